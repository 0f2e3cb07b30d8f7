from .embedding import Embedder as Embedder
from .filling import Filler as Filler
from .reading import Reader as Reader
from .reading_settings import ReadingSettings as ReadingSettings
from .tagging.tagger import Tagger as Tagger
