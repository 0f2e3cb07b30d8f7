"""Text vectors from any model, with a choice of layer and pooling.

How texts become vectors, in `korbert.Model.embed`:

1. vector_settings.py: VectorSettings (layers, pooling, special tokens, normalization, size); names.py has their names.
2. encoder.py: pieces -> vectors of pieces, of the layers in the settings -> one vector per text, by the table of
   poolings.

Also here: parts.py (vectors of pieces, morphemes and eojeols, with their spans), attention.py (weights of all heads,
between pieces, morphemes or eojeols), attribution.py (how much each piece contributes to a label). None of them
imports korbert.tasks.
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
