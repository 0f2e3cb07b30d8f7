"""Export to `transformers`, and import from it.

Export, `export`:

1. exporting.py checks the folder, and writes to a temporary folder before anything is replaced.
2. conversion.py converts our config to theirs, or refuses, and renames the weights.
3. tokenization_korbert.py becomes the tokenizer's code, with modules of korbert.tokenization in place of its imports;
   modeling_korbert.py is the code of encoders with embeddings that ModernBERT lacks.

Import, importing.py: `import_folder` keeps their encoder and tokenizer, behind adapters.
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
