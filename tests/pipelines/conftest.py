"""What the tests of several stages read."""

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import torch

from korbert.modeling import ClassificationModel, PretrainingModel, QuestionAnsweringModel, save_model
from korbert.pipelines.artifacts.stage import StageInputs
from korbert.pretraining import SpecialIds
from korbert.pretraining.shards import write_random_shards
from korbert.tasks.kinds.classification import Classification
from korbert.tasks.kinds.question_answering import QuestionAnswering
from tests.running import own_data, units_here


@pytest.fixture(scope="module", autouse=True)
def _units_here():
    """The recipe's folder is the data folder, and commands of this process start no workers."""
    with own_data(), units_here():
        yield


@pytest.fixture(scope="session")
def pretraining(tmp_path_factory, tiny_tokenizer):
    """What pretrain reads: a tokenizer, counts of three words, and made-up rows."""
    folder = tmp_path_factory.mktemp("pretraining")
    tiny_tokenizer.save(folder / "vocab" / "tokenizer")
    counts = pa.table({"form": ["영화", "재미", "학교"], "tag": ["NNG"] * 3, "count": [30, 20, 10]})
    pq.write_table(counts, folder / "vocab" / "counts.parquet")
    write_random_shards(folder / "shard", SpecialIds.of(tiny_tokenizer), seed=1)
    return StageInputs({name: folder / name for name in ("vocab", "shard")}, {})


@pytest.fixture(scope="session")
def untrained_models(tmp_path_factory, tiny_tokenizer, tiny_config):
    """A folder with artifacts of models that have learned nothing, pretrain and nsmc: not to be changed."""
    root = tmp_path_factory.mktemp("models")
    config = tiny_config(num_hidden_layers=1)
    generator = torch.Generator().manual_seed(0)
    save_model(root / "pretrain" / "model", PretrainingModel(config, generator), tiny_tokenizer)
    labels = ["부정", "긍정"]
    task = Classification(metrics=("accuracy",), max_length=128, labels=labels).task()
    classifier = ClassificationModel(config, 2, labels=labels, generator=generator)
    save_model(root / "nsmc" / "model", classifier, tiny_tokenizer, task)
    return root


@pytest.fixture(scope="session")
def untrained_reader(tmp_path_factory, tiny_tokenizer, tiny_config):
    """The folder of a question answering model that knows nothing: not to be changed."""
    path = tmp_path_factory.mktemp("reader") / "model"
    reader = QuestionAnsweringModel(tiny_config(num_hidden_layers=1), torch.Generator().manual_seed(0))
    kind = QuestionAnswering(metrics=("f1",), max_length=40, stride=8, max_query_pieces=8)
    save_model(path, reader, tiny_tokenizer, kind.task())
    return path
