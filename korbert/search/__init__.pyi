from . import evaluation as evaluation
from . import negatives as negatives
from .fusion import Hit as Hit
from .index import Index as Index
