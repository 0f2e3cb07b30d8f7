"""Labels on characters, words or spans of a text: named entities, parts of speech.

1. bio.py: spans as BIO tags, and back.
2. labels.py: character spans and word labels as labels of pieces, and back; what pieces cannot express.
3. examples.py: windows over long texts, rows of pieces with their targets.
4. tagger.py: the loss, scores of many rows, the most probable legal tag sequence, and the labels of a text.
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
