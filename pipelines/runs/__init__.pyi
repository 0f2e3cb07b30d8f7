from . import runner as runner
from . import sources as sources
from .pipeline import Pipeline as Pipeline
from .pipeline import open_pipeline as open_pipeline
