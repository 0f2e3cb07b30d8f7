"""korbert: a Korean BERT pipeline with morpheme tokenization. This package is its models: text in, answers out.

1. tokenization/  text -> morphemes (Kiwi) -> pieces of the vocabulary: ids, boundaries, spans.
2. pretraining/   documents as ids (shards) -> rows with masks and sentence pairs -> batches, losses, held-out figures.
3. training/      batches and a loss -> updates of the weights, checkpoints, metrics.
4. modeling/      ids -> one vector per piece (encoder) -> scores (heads); model folders.
5. tasks/         labelled texts and questions -> batches; a trained model -> labels, answers, filled gaps.
6. huggingface/   export to `transformers`, and import from it.

model.py is a model in use: `korbert.load(folder)` opens one; its vectors are those of embedder.py. Above it, search/
finds texts, and sklearn.py has estimators of scikit-learn. What the package offers of `pipelines` (`korbert.finetune`,
`korbert.run`, ..) is named in __init__.pyi and imported when it is used.

Used by all: errors.py, messages/ (what people read, in English and Korean), system/ (files, processes, signals,
terminals), folders.py and hub.py (model folders), names.py, seeds.py, and notebook.py (tables in notebooks).
"""

import lazy_loader

__version__ = "0.1.0"

__getattr__, _, __all__ = lazy_loader.attach_stub(__name__, __file__)
__all__ += ["__version__"]


def __dir__() -> list[str]:
    return sorted(__all__)
