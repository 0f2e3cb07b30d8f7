"""Tiny models of every kind, and one service with all of them."""

from typing import Any

import pytest
import torch

from korbert.modeling import models as heads
from korbert.modeling import save_model
from korbert.tasks.kinds.classification import Classification
from korbert.tasks.kinds.embedding import Embedding
from korbert.tasks.kinds.question_answering import QuestionAnswering
from korbert.tasks.kinds.token_classification import TokenClassification
from tests.pipelines.service.started import started


@pytest.fixture(scope="session")
def models(tmp_path_factory, tiny_tokenizer, tiny_config):
    """Name -> folder of a model that knows nothing; the one of vectors first."""
    config = tiny_config(intermediate_size=32, max_position_embeddings=64, type_vocab_size=2, initializer_range=0.3)
    random = torch.Generator().manual_seed(3)
    task = Classification(metrics=("accuracy",), max_length=32, labels=("같다", "다르다"), pair=True)
    mood = Classification(metrics=("accuracy",), max_length=32, labels=("부정", "긍정"))
    vectors = Embedding(metrics=("spearman",), max_length=32, learns="scores", normalize=True)
    windows: Any = {"max_length": 48, "stride": 8}
    names = TokenClassification(metrics=("accuracy",), tags=("O", "B-PS", "I-PS"), units="characters", **windows)
    answers = QuestionAnswering(metrics=("f1",), max_query_pieces=12, **windows)
    made = {
        "vectors": (vectors.model(config, random), vectors.task()),
        "gaps": (heads.PretrainingModel(config, random), {}),
        "mood": (mood.model(config, random), mood.task()),
        "pairs": (task.model(config, random), task.task()),
        "names": (names.model(config, random), names.task()),
        "answers": (answers.model(config, random), answers.task()),
    }
    folder = tmp_path_factory.mktemp("models")
    for name, (model, facts) in made.items():
        save_model(folder / name, model, tiny_tokenizer, facts)
    return {name: folder / name for name in made}


@pytest.fixture(scope="session")
def service(models):
    """All of them behind `korbert serve`."""
    with started(*map(str, models.values())) as running:
        yield running
