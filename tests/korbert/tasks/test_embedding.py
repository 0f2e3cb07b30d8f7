"""Vectors of texts: losses against computations written apart, and a model in use."""

import math
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
import torch
from foreign_folders import CONFIGS
from torch import Tensor

import korbert
from korbert.errors import ModelError, SettingsError
from korbert.model import Model
from korbert.modeling import EmbeddingModel, EncoderConfig
from korbert.modeling.config import AnyConfig
from korbert.modeling.foreign import CLASSES, adapted_config, class_of
from korbert.tasks.embedding import contrastive_loss, ranking_loss
from korbert.tasks.kinds.embedding import Embedding
from korbert.tokenization import Tokenizer

TEXTS = [
    "아버지가 방에 들어가신다.",
    "",
    "나는 어제 학교에 갔다가 친구를 만났는데, 정말 반가웠어!",
    "서울",
    "ㅋㅋㅋ " * 40,
]


def drawn(seed: int, *shape: int) -> Tensor:
    return torch.randn(shape, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)


def cosine(a: Tensor, b: Tensor) -> float:
    return float((a * b).sum()) / math.sqrt(float((a * a).sum()) * float((b * b).sum()))


@pytest.mark.parametrize("far", [0, 3])
def test_contrastive_loss(far: int) -> None:
    """The mean over the anchors of -log of the positive's share of all exp(cosine / temperature)."""
    anchors, positives, negatives = drawn(1, 4, 6), drawn(2, 4, 6), drawn(3, far, 6)
    losses = []
    for place in range(4):
        shares = [math.exp(cosine(anchors[place], other) / 0.05) for other in (*positives, *negatives)]
        losses.append(-math.log(shares[place] / sum(shares)))
    same = torch.eye(4, dtype=torch.bool)
    assert float(contrastive_loss(anchors, positives, negatives, same, 0.05)) == pytest.approx(
        sum(losses) / 4, rel=1e-9
    )
    with torch.autocast("cpu", dtype=torch.bfloat16):
        found = contrastive_loss(anchors.float(), positives.float(), negatives.float(), same, 0.05)
    assert float(found) == pytest.approx(sum(losses) / 4, rel=1e-5)


def test_positives_of_the_same_text_are_no_negatives() -> None:
    anchors, positives, none = drawn(1, 3, 6), drawn(2, 3, 6), drawn(3, 0, 6)
    anchors[2] = anchors[0]
    same = torch.tensor([[1, 0, 1], [0, 1, 0], [1, 0, 1]]).bool()
    losses = []
    for place, others in ((0, (0, 1)), (1, (0, 1, 2)), (2, (1, 2))):
        shares = {other: math.exp(cosine(anchors[place], positives[other])) for other in others}
        losses.append(-math.log(shares[place] / sum(shares.values())))
    assert float(contrastive_loss(anchors, positives, none, same, 1.0)) == pytest.approx(sum(losses) / 3, rel=1e-9)


def test_ranking_loss() -> None:
    """A pair of rows counts where the one with the higher score has the lower cosine; equal scores do not."""
    first, second, scores = drawn(1, 5, 6), drawn(2, 5, 6), torch.tensor([0.0, 2.0, 2.0, 5.0, 1.0])
    found = [cosine(a, b) for a, b in zip(first, second, strict=True)]
    total = 1.0
    for high in range(5):
        for low in range(5):
            if scores[high] > scores[low]:
                total += math.exp((found[low] - found[high]) / 0.05)
    assert float(ranking_loss(first, second, scores, 0.05)) == pytest.approx(math.log(total), rel=1e-9)
    assert float(ranking_loss(first, second, torch.ones(5), 0.05)) == 0


@pytest.mark.parametrize("model_type", ["ours", *CLASSES])
def test_two_draws_of_dropout_differ(model_type: str, tiny_tokenizer: Tokenizer) -> None:
    """Also where the encoder was made without dropout."""
    config: AnyConfig = EncoderConfig(
        vocab_size=500, hidden_size=16, num_hidden_layers=2, num_attention_heads=2, intermediate_size=16
    )
    if model_type != "ours":
        full = class_of(model_type).config_class(vocab_size=500, **CONFIGS[model_type]).to_dict()
        none = {name: 0.0 if "dropout" in name and value else value for name, value in full.items()}
        config = adapted_config(none, vocab_size=500)
    task = Embedding(metrics=("spearman",), max_length=32, learns="texts")
    model = task.model(config, torch.Generator().manual_seed(1))
    ids = torch.arange(100, 106).repeat(2, 1)
    with torch.no_grad():
        one, two = model.train()(ids)
        assert float((one - two).abs().max()) > 1e-3
        one, two = model.eval()(ids)
        assert float((one - two).abs().max()) < 1e-5


@pytest.fixture
def made(tiny_tokenizer: Tokenizer) -> Callable[..., Model]:
    """A new model, in use."""

    def embedder(architecture: str = "modern", **settings: object) -> Model:
        config = EncoderConfig.model_validate(
            {
                "architecture": architecture, "vocab_size": tiny_tokenizer.vocab_size, "hidden_size": 16,
                "num_hidden_layers": 2, "num_attention_heads": 2, "intermediate_size": 16,
                "max_position_embeddings": 32, "initializer_range": 0.5,
            }
        )  # fmt: skip
        model = EmbeddingModel(config, generator=torch.Generator().manual_seed(1), **settings)  # type: ignore[arg-type]
        return Model(model, tiny_tokenizer)

    return embedder


@pytest.mark.parametrize("architecture", ["bert", "modern"])
@pytest.mark.parametrize("pooling", ["mean", "first"])
def test_vectors_are_in_order_whatever_the_batches(
    made: Callable[..., Model], architecture: str, pooling: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    embedder = made(architecture, pooling=pooling)
    alone = np.stack([embedder.embed(text) for text in TEXTS])
    assert (alone.shape, alone.dtype) == ((5, 16), np.float32)
    assert min(abs(alone[one] - alone[two]).max() for one in range(5) for two in range(one)) > 1e-3
    for size in (1, 2, 64):
        np.testing.assert_allclose(embedder.embed(TEXTS, batch_size=size), alone, atol=1e-5)
    monkeypatch.setattr("korbert.model.TEXTS_AT_ONCE", 2)
    parts = list(embedder.stream(iter(TEXTS)))
    assert [len(part) for part in parts] == [2, 2, 1]
    np.testing.assert_allclose(np.concatenate(parts), alone, atol=1e-5)
    np.testing.assert_allclose(embedder.embed(TEXTS), alone, atol=1e-5)
    assert embedder.embed([]).shape == (0, 16)


def test_the_mean_is_over_the_pieces_of_a_text(made: Callable[..., Model], tiny_tokenizer: Tokenizer) -> None:
    embedder = made()
    for text in TEXTS:
        row = tiny_tokenizer.encode(text, max_length=32)
        with torch.inference_mode():
            hidden = embedder.network.encoder(torch.tensor([row.input_ids]))[0]
        np.testing.assert_allclose(embedder.embed(text), hidden.mean(dim=0), atol=1e-5)


def test_similarity(made: Callable[..., Model]) -> None:
    embedder = made(normalize=True)
    vectors = embedder.embed(TEXTS)
    np.testing.assert_allclose(np.linalg.norm(vectors, axis=1), 1, atol=1e-6)
    assert embedder.similarity(TEXTS[0], TEXTS[2]) == pytest.approx(float(vectors[0] @ vectors[2]), abs=1e-5)
    np.testing.assert_allclose(embedder.similarity(TEXTS[:2], TEXTS), vectors[:2] @ vectors.T, atol=1e-5)
    np.testing.assert_allclose(embedder.similarity(TEXTS[0], TEXTS), vectors[0] @ vectors.T, atol=1e-5)
    plain = made()
    assert abs(plain.similarity(TEXTS, TEXTS)).max() < 1 + 1e-5
    assert plain.similarity(TEXTS[0], TEXTS[0]) == pytest.approx(1)


def test_what_is_refused(made: Callable[..., Model]) -> None:
    embedder = made()
    with pytest.raises(SettingsError, match=r"texts\[1\] is int 3: give only strings"):
        embedder.embed(["가", 3])  # type: ignore[list-item]
    embedder.network.encoder.embeddings.norm.weight.data.fill_(float("nan"))
    with pytest.raises(
        ModelError, match=r"model: its vectors are not finite: train it again with a lower learning_rate"
    ):
        embedder.embed("가")


def test_a_saved_model_is_loaded_for_use(made: Callable[..., Model], tmp_path: Path) -> None:
    embedder = made("bert", pooling="first", normalize=True)
    kind = embedder.kind.model_copy(update={"max_length": 5})
    short = Model(embedder.network, embedder.tokenizer, kind)
    short.save(tmp_path / "model")
    again = korbert.load(tmp_path / "model", "cpu")
    assert again.kind == kind
    assert again.max_length == 5
    np.testing.assert_allclose(again.embed(TEXTS), short.embed(TEXTS))
