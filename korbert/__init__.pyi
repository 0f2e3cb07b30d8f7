from . import sklearn as sklearn
from .errors import ArtifactError as ArtifactError
from .errors import CorpusError as CorpusError
from .errors import KorbertError as KorbertError
from .errors import ModelError as ModelError
from .errors import SettingsError as SettingsError
from .folders import models as models
from .model import Model as Model
from .model import load as load
from .search import Index as Index
from .tokenization import Tokenizer as Tokenizer
from .workflows import Comparison as Comparison
from .workflows import Evaluation as Evaluation
from .workflows import Finetuned as Finetuned
from .workflows import Run as Run
from .workflows import compare as compare
from .workflows import evaluate as evaluate
from .workflows import finetune as finetune
from .workflows import pretrain as pretrain
from .workflows import run as run

__version__: str
