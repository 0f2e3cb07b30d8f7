from . import cards as cards
from . import compare as compare
from . import layers as layers
from . import look as look
from . import searching as searching
from . import summary as summary
from .index_page import index as index
from .stage_page import render as render
