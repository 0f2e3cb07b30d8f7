from .parts import Parts as Parts
from .pooling import POOLINGS as POOLINGS
from .settings import VectorSettings as VectorSettings
