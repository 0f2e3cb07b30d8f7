"""The linear model of words and vectors, against scikit-learn; what folds choose."""

import numpy as np
import pytest
import torch
from scipy import sparse
from sklearn.linear_model import LogisticRegression

from korbert.modeling import EmbeddingModel, LinearModel, load_model, save_model
from korbert.modeling.files.packing import pack
from korbert.modeling.files.storage import read_config
from korbert.tasks import linear
from korbert.tasks.kinds.texts import LinearExamples
from korbert.tasks.linear import FoldChoice, LinearInputs, Words, choose, fit
from korbert.tasks.passages import encode_passages
from korbert.training import model_inputs, outputs
from tests.korbert.tiny import same_weights

CPU = torch.device("cpu")
TEXTS = ["영화가 정말 좋다", "정말 지루한 영화", "배우가 좋다 좋다", "지루하다", "또 보고 싶다", "시간이 아깝다"] * 4


def targets_of(num_labels):
    return np.array([number % num_labels for number in range(len(TEXTS))])


@pytest.fixture(scope="module")
def start(tiny_tokenizer, tiny_config):
    return EmbeddingModel(tiny_config(), generator=torch.Generator().manual_seed(3)).eval()


def examples_of(tokenizer, rows, max_length=16):
    passages = [encode_passages(tokenizer, [row] if isinstance(row, str) else list(row)) for row in rows]
    return LinearExamples.of_texts(passages, np.zeros(len(rows), np.int64), tokenizer, max_length)


def inputs_of(start, examples):
    model = LinearModel.on(start, 1, 0, examples.num_texts).eval()

    def vectors_of(model, batch):
        return model.row_vectors(batch["input_ids"], batch["attention_mask"], batch["boundaries"], batch["texts"])

    return LinearInputs(examples.terms, outputs(model, examples, vectors_of, device=CPU))


def scores_of(model, examples):
    return outputs(model, examples, lambda model, batch: model(**model_inputs(batch)), device=CPU, batch_size=5)


@pytest.mark.parametrize("num_labels", [2, 3])
@pytest.mark.parametrize("pairs", [False, True], ids=["texts", "pairs"])
def test_scores_are_those_of_scikit_learn(tiny_tokenizer, start, num_labels, pairs):
    rows = list(zip(TEXTS, TEXTS[1:] + TEXTS[:1], strict=True)) if pairs else TEXTS
    examples = examples_of(tiny_tokenizer, rows)
    inputs = inputs_of(start, examples)
    targets = targets_of(num_labels)
    choice = FoldChoice(True, 3.0, (0.0, 0.0), np.arange(len(rows)), np.empty(0))
    model = fit(inputs, targets, num_labels, choice, start, 2 if pairs else 1)

    words = Words(inputs.terms)
    matrix = sparse.hstack([words.columns(inputs.terms), sparse.csr_matrix(inputs.vectors)], format="csr")
    how = {"max_iter": 300, "tol": 1e-3} if num_labels > 2 else {"solver": "liblinear", "dual": True, "max_iter": 1_000}
    expected = LogisticRegression(C=3.0, random_state=0, **how).fit(matrix, targets).decision_function(matrix)
    scores = scores_of(model, examples)
    if num_labels == 2:
        np.testing.assert_allclose(scores[:, 1] - scores[:, 0], expected, atol=1e-5)
    else:
        np.testing.assert_allclose(scores, expected, atol=1e-5)


def test_several_labels_have_a_model_each(tiny_tokenizer, start):
    examples = examples_of(tiny_tokenizer, TEXTS)
    inputs = inputs_of(start, examples)
    targets = np.array([[number % 2 == 0, number % 3 == 0, True, False] for number in range(len(TEXTS))])
    choice = FoldChoice(False, 1.0, (0.0, 0.0), np.arange(len(TEXTS)), np.empty(0))
    scores = scores_of(fit(inputs, targets, 4, choice, start, 1), examples)
    for label in (0, 1):
        theirs = LogisticRegression(solver="liblinear", dual=True, max_iter=1_000, random_state=0)
        theirs.fit(inputs.vectors.astype(float), targets[:, label])
        np.testing.assert_allclose(scores[:, label], theirs.decision_function(inputs.vectors), atol=1e-5)
    assert (scores[:, 2] > 10).all()  # all rows have it
    assert (scores[:, 3] < -10).all()


def test_a_long_text_has_the_mean_of_its_windows(tiny_tokenizer, start):
    long = " ".join(TEXTS)
    (passage,) = encode_passages(tiny_tokenizer, [long])
    parts = [passage.window(at, 14) for at in range(0, len(passage.ids), 14)]
    assert len(parts) > 3
    windows = LinearExamples.of_texts([[part] for part in parts], np.zeros(len(parts)), tiny_tokenizer, 16)
    mean = inputs_of(start, windows).vectors.mean(axis=0)
    (vector,) = inputs_of(start, examples_of(tiny_tokenizer, [long])).vectors
    np.testing.assert_allclose(vector, mean / np.linalg.norm(mean), atol=1e-6)


def test_what_nobody_has_learned_adds_nothing(tiny_tokenizer, start):
    examples = examples_of(tiny_tokenizer, TEXTS)
    choice = FoldChoice(True, 1.0, (0.0, 0.0), np.arange(len(TEXTS)), np.empty(0))
    model = fit(inputs_of(start, examples), targets_of(2), 2, choice, start, 1)
    others = examples_of(tiny_tokenizer, ["", "XYZ!?"])
    vectors = inputs_of(start, others).vectors
    expected = model.vectors(torch.from_numpy(vectors)).numpy()
    np.testing.assert_allclose(scores_of(model, others), expected, atol=1e-6)


def test_a_saved_and_a_packed_model_score_alike(tiny_tokenizer, start, tmp_path):
    examples = examples_of(tiny_tokenizer, TEXTS)
    choice = FoldChoice(True, 1.0, (0.0, 0.0), np.arange(len(TEXTS)), np.empty(0))
    model = fit(inputs_of(start, examples), targets_of(3), 3, choice, start, 1)
    save_model(tmp_path / "model", model, tiny_tokenizer)
    loaded, _ = load_model(tmp_path / "model", "linear")
    assert same_weights(loaded, model)
    assert read_config(tmp_path / "model")["head"]["num_terms"] == model.num_terms > 0
    pack(tmp_path / "model", tmp_path / "packed")
    packed, _ = load_model(tmp_path / "packed")
    assert torch.equal(packed.terms, model.terms)
    np.testing.assert_allclose(scores_of(packed, examples), scores_of(model, examples), atol=0.05)


def inputs_with(words, vectors):
    """Rows of one term each, or none, and given vectors."""
    counts = [int(word >= 0) for word in words]
    ids = np.array([word for word in words if word >= 0], dtype=np.int64)
    terms = linear.Terms(ids, np.ones(len(ids), np.float32), np.cumsum([0, *counts]))
    return LinearInputs(terms, np.asarray(vectors, dtype=np.float32))


@pytest.mark.parametrize("words_tell", [True, False])
def test_words_stay_if_they_help_on_rows_held_out(words_tell):
    rng = np.random.default_rng(1)
    targets = rng.integers(0, 2, 200)
    words = targets if words_tell else rng.integers(0, 2, 200)
    vectors = rng.normal(size=(200, 4))
    vectors[:, 0] += 2 * targets
    choice = choose(inputs_with(words, vectors), targets, 2, [str(number) for number in range(200)])
    assert choice.with_words == words_tell
    assert (choice.gain[0] > 2 * choice.gain[1]) == words_tell


def test_equal_texts_are_in_one_fold():
    texts = [str(number // 4) for number in range(40)]
    targets = np.array([number // 4 % 2 for number in range(40)])
    seen = []
    for train, test in linear._folds(targets, texts):
        assert not {texts[number] for number in train} & {texts[number] for number in test}
        seen += test.tolist()
    assert sorted(seen) == list(range(40))


@pytest.mark.parametrize(
    ("targets", "texts"),
    [([0, 1, 1], ["가", "나", "다"]), ([0, 1, 1, 0], ["가"] * 4), ([0, 0, 0, 1], ["가", "나", "다", "가"])],
    ids=["few", "one text", "a label in one fold"],
)
def test_few_rows_are_enough(targets, texts):
    rng = np.random.default_rng(0)
    inputs = inputs_with([-1] * len(targets), rng.normal(size=(len(targets), 4)))
    choice = choose(inputs, np.array(targets), 2, texts)
    assert not choice.with_words
    assert np.isfinite(choice.scores).all()
