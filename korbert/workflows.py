"""What `korbert` offers of the pipeline: fine-tuning, recipes, scores.

Of all modules of `korbert` this one alone imports `pipelines`, which is built upon the others; nothing imports it but
`korbert` itself, when one of these names is used, and `korbert.sklearn`.
"""

from korbert.pipelines.library import Comparison as Comparison
from korbert.pipelines.library import Evaluation as Evaluation
from korbert.pipelines.library import Finetuned as Finetuned
from korbert.pipelines.library import Run as Run
from korbert.pipelines.library import compare as compare
from korbert.pipelines.library import evaluate as evaluate
from korbert.pipelines.library import finetune as finetune
from korbert.pipelines.library import pretrain as pretrain
from korbert.pipelines.library import run as run
