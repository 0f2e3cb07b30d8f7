"""Text to pieces and back to characters: Kiwi's morphemes, a vocabulary learned from them, and ids.

How one text becomes ids, `Tokenizer.encode`:

1. repair.py cuts long lines and removes what Kiwi cannot handle, keeping offsets into the original text.
2. morphemes.py gives Kiwi line after line and returns an Analysis: forms, tags, spans, sentences, eojeols.
3. vocabulary.py turns forms into ids, and finds the characters that each piece stands for.
4. pieces.py makes both into Pieces, also where "[MASK]" in the text is the mask.
5. encoding.py adds [CLS] and [SEP], truncates or cuts into windows, pads batches, and maps back to characters.

Many texts, `Tokenizer.encode_batch`, take the same steps; analyzer.py gives Kiwi threads for step 2. Exported folders
include the code of steps 1 to 4.

Also here: tokenizer_settings.py (options, a user's dictionary), learning.py (morpheme counts to a vocabulary),
folder.py (files, record and digest of a tokenizer), extending.py (adds words to a tokenizer), kiwi_vectors.py (vectors
of morphemes).

Tokenizers of `transformers`: transformers_tokenizer.py has the same interface, tokenizer_base.py.
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
