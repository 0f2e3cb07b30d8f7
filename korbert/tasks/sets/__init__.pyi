from . import loading as loading
from .table import PARTS as PARTS
from .table import SETS as SETS
from .table import Files as Files
from .table import KnownSet as KnownSet
from .table import SplitName as SplitName
from .table import known_set as known_set
from .table import listing as listing
