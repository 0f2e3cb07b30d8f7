from .data import read as read
from .data import read_predictions as read_predictions
from .metrics import exact_match as exact_match
from .metrics import f1 as f1
from .metrics import score as score
