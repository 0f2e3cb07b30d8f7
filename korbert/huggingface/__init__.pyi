from .exporting import export as export
from .importing import SENTENCE as SENTENCE
from .importing import import_folder as import_folder
from .importing import load_transformers as load_transformers
