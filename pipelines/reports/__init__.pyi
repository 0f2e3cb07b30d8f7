from .index_page import index as index
from .page import render as render
