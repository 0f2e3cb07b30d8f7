from . import checking as checking
from . import compare as compare
from . import layers as layers
from . import noise as noise
from . import preview as preview
from . import searching as searching
