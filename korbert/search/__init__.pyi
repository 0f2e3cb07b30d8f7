from .fusion import Hit as Hit
from . import evaluation as evaluation
from . import negatives as negatives
from .index import Index as Index
