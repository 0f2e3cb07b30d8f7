from .index_page import index as index
from .stage_page import render as render
