from .exporting import export as export
from .importing import import_folder as import_folder
