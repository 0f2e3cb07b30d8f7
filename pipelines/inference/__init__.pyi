from . import embedding as embedding
from . import input_records as input_records
from . import lines as lines
from . import parts as parts
from . import predicting as predicting
from . import questions as questions
from . import teachers as teachers
from . import tokenizing as tokenizing
