from . import stage_page as stage_page
from . import task_scores as task_scores
