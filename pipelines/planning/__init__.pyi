from . import plan as plan
from . import tables as tables
