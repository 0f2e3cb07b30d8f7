from . import files as files
from . import loading as loading
from . import template as template
