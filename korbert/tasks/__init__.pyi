from .embedding import Embedder as Embedder
from .filling import Filler as Filler
from .question_answering.reading import Reader as Reader
from .question_answering.settings import ReadingSettings as ReadingSettings
from .token_classification.tagger import Tagger as Tagger
