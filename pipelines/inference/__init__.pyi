from . import embedding as embedding
from . import lines as lines
from . import predicting as predicting
from . import questions as questions
from . import records as records
from . import teachers as teachers
from . import tokenizing as tokenizing
