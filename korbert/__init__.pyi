from . import sklearn as sklearn
from .errors import ArtifactError as ArtifactError
from .errors import CorpusError as CorpusError
from .errors import KorbertError as KorbertError
from .errors import ModelError as ModelError
from .errors import SettingsError as SettingsError
from .folders import models as models
from .labelling import suggest as suggest
from .labelling import zero_shot as zero_shot
from .model import Model as Model
from .model import load as load
from .pipelines.library import Comparison as Comparison
from .pipelines.library import Evaluation as Evaluation
from .pipelines.library import Finetuned as Finetuned
from .pipelines.library import Run as Run
from .pipelines.library import compare as compare
from .pipelines.library import evaluate as evaluate
from .pipelines.library import finetune as finetune
from .pipelines.library import pretrain as pretrain
from .pipelines.library import run as run
from .search import Index as Index
from .tokenization import Tokenizer as Tokenizer

__version__: str
