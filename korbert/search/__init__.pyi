from . import evaluation as evaluation
from . import negatives as negatives
from .database import is_index as is_index
from .hits import Hit as Hit
from .index import Added as Added
from .index import Index as Index
from .index import default_way as default_way
from .index import rerank_kind as rerank_kind
