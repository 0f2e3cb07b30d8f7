from . import data as data
from . import layers as layers
from . import page as page
