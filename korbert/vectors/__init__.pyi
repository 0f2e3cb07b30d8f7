from .counts import PieceCounts as PieceCounts
from .occurrences import Occurrence as Occurrence
from .occurrences import distances as distances
from .parts import Parts as Parts
from .pooling import POOLINGS as POOLINGS
from .settings import VectorSettings as VectorSettings
