from . import compare_pretraining as compare_pretraining
from . import compare_tasks as compare_tasks
from . import evaluating as evaluating
from . import layers as layers
from . import preparing as preparing
from . import scores as scores
from . import search as search
