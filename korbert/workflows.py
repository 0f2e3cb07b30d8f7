"""What `korbert` offers of the pipeline: fine-tuning, recipes, scores.

Of all modules of `korbert` this one alone imports `pipelines`, which is built upon the others; nothing imports it but
`korbert` itself, when one of these names is used, and `korbert.sklearn`.
"""

from pipelines.library import Comparison as Comparison
from pipelines.library import Evaluation as Evaluation
from pipelines.library import Finetuned as Finetuned
from pipelines.library import Run as Run
from pipelines.library import compare as compare
from pipelines.library import evaluate as evaluate
from pipelines.library import finetune as finetune
from pipelines.library import pretrain as pretrain
from pipelines.library import run as run
