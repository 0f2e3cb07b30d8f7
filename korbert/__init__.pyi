from .model import Model as Model
from .model import load as load

__version__: str
