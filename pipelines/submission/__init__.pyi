from . import check as check
from . import writing as writing
