from . import data as data
from . import page as page
