from . import figures as figures
from . import formatting as formatting
from . import store as store
from .stage import Runtime as Runtime
