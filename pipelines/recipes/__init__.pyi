from . import files as files
from . import loading as loading
from . import one_task as one_task
from . import template as template
