from . import runner as runner
from . import sources as sources
from . import store as store
from .pipeline import Pipeline as Pipeline
from .runtime import Runtime as Runtime
