"""The training loop of pretraining and all tasks. How a batch goes through one update:

1. plan.py         how a model is trained (TrainingPlan, OptimizerSettings), where files go (TrainingOutput).
2. loop.py         `fit`: loads the newest checkpoint, if any; then goes step by step, while feeding.py has a thread or
                   processes make the batches of the next steps.
3. examples.py     labelled rows of pieces, flat in memory, and their order in training; (B, T) tensors of them.
4. devices.py      the tensors moved to the device; precision; memory.
5. updates.py      forward and backward of each micro-batch; gradients added up (distributed.py: over all processes),
                   clipped, and applied by AdamW at the rate of the step (plan.py).
6. metric_files.py means of losses, rate and gradient norm, written to files and TensorBoard.
7. checkpoints.py  model, optimizer and metric sums on disk, to resume from.

scoring.py runs a trained model over examples.
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
