from .fusion import Hit as Hit
from .index import Index as Index
