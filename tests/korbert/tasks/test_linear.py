"""The linear model of words and vectors, against scikit-learn; what folds choose."""

import numpy as np
import pytest
import torch
from scipy import sparse
from scipy.stats import sem
from sklearn.linear_model import LogisticRegression, Ridge
from sklearn.naive_bayes import MultinomialNB

from korbert.modeling import EmbeddingModel, LinearModel, load_model, save_model
from korbert.modeling.files.packing import pack
from korbert.modeling.files.storage import read_config
from korbert.tasks import linear
from korbert.tasks.kinds.texts import LinearExamples
from korbert.tasks.linear import LinearInputs, Words, choose, fit
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
    model = LinearModel.on(start, 1, 0, examples.num_texts).eval()  # with the center of a reader

    def vectors_of(model, batch):
        return model.row_vectors(
            model.text_vectors(batch["input_ids"], batch["attention_mask"], batch["boundaries"], batch["text_numbers"])
        )

    return LinearInputs(examples.terms, outputs(model, examples, vectors_of, device=CPU))


def reader_of(start, num_texts=1):
    """A model that gives vectors, with a center."""
    reader = LinearModel.on(start, 1, 0, num_texts).eval()
    reader.center.copy_(torch.linspace(-0.1, 0.1, len(reader.center)))
    return reader


def scores_of(model, examples):
    return outputs(model, examples, lambda model, batch: model(**model_inputs(batch)), device=CPU, batch_size=5)


@pytest.fixture(scope="module")
def read(tiny_tokenizer, start):
    """The examples of TEXTS, a reader of them, and their words and vectors."""
    examples, reader = examples_of(tiny_tokenizer, TEXTS), reader_of(start)
    return examples, reader, inputs_of(reader, examples)


def evidence_of(words, *columns):
    """By the naive Bayes model of scikit-learn, of each label against the others."""
    present = (words > 0).astype(float)
    squares = []
    for targets in columns:
        for label in np.unique(targets):
            others, own = MultinomialNB(alpha=1.0).fit(present, targets == label).feature_log_prob_
            squares.append(np.mean(targets == label) * (own - others) ** 2)
    evidence = np.sqrt(np.sqrt(np.sum(squares, axis=0)))
    return evidence / evidence.mean()


def test_the_weights_are_where_the_encoder_is(start):
    model = LinearModel.on(EmbeddingModel(start.config).to("meta"), 2, 3, 1)
    model.center.copy_(torch.zeros_like(model.center))
    assert {tensor.device.type for tensor in model.scaled(2.0).state_dict().values()} == {"meta"}


@pytest.mark.parametrize("num_labels", [2, 3])
@pytest.mark.parametrize("pairs", [False, True], ids=["texts", "pairs"])
def test_scores_are_those_of_scikit_learn(tiny_tokenizer, start, num_labels, pairs):
    rows = list(zip(TEXTS, TEXTS[1:] + TEXTS[:1], strict=True)) if pairs else TEXTS
    examples = examples_of(tiny_tokenizer, rows)
    reader = reader_of(start, 1 + pairs)
    inputs = inputs_of(reader, examples)
    targets = targets_of(num_labels)
    words = fit(inputs, targets, num_labels, "words", 3.0, reader)
    vectors = fit(inputs, targets, num_labels, "vectors", 3.0, reader)
    binary = {"solver": "liblinear", "dual": True, "max_iter": 1_000}
    expected = []
    columns = Words(inputs.terms).columns(inputs.terms)
    columns = columns.multiply(evidence_of(columns, targets)).tocsr()
    for model, matrix in ((words, columns), (vectors, inputs.vectors.astype(float))):
        is_exact = matrix.shape[0] < matrix.shape[1]
        multinomial = {"max_iter": 10_000, "tol": 1e-8} if is_exact else {"max_iter": 300, "tol": 1e-3}
        how = multinomial if num_labels > 2 else binary
        theirs = LogisticRegression(C=3.0, random_state=0, **how).fit(matrix, targets).decision_function(matrix)
        scores = scores_of(model, examples)
        np.testing.assert_allclose(scores[:, 1] - scores[:, 0] if num_labels == 2 else scores, theirs, atol=1e-4)
        expected.append(scores)
    both = scores_of(vectors.with_words(words, 0.3), examples)
    np.testing.assert_allclose(both, 0.3 * expected[0] + 0.7 * expected[1], atol=1e-5)


def test_numbers_are_those_of_ridge_regression(read):
    examples, reader, inputs = read
    targets = np.linspace(50.0, 90.0, len(TEXTS))
    for column in ("words", "vectors"):
        matrix = inputs.vectors.astype(float)
        if column == "words":
            matrix = Words(inputs.terms).columns(inputs.terms)
        expected = Ridge(1 / 3, tol=1e-3).fit(matrix, targets).predict(matrix)
        scores = scores_of(fit(inputs, targets, 1, column, 3.0, reader), examples)
        np.testing.assert_allclose(scores[:, 0], expected, atol=1e-4)
    choice = choose([inputs], targets, 1, TEXTS)
    variances = np.square(choice.trials["vectors"].scores[:, 0] - targets).mean() / targets.var()
    assert choice.losses == pytest.approx([variances])


@pytest.mark.parametrize("column", ["words", "vectors"])
def test_several_labels_have_a_model_each(read, column):
    examples, reader, inputs = read
    targets = np.array([[number % 2 == 0, number % 3 == 0, True, False] for number in range(len(TEXTS))])
    matrix = inputs.vectors.astype(float)
    if column == "words":
        words = Words(inputs.terms).columns(inputs.terms)
        matrix = words.multiply(evidence_of(words, targets[:, 0], targets[:, 1])).tocsr()
    scores = scores_of(fit(inputs, targets, 4, column, 1.0, reader), examples)
    for label in (0, 1):
        theirs = LogisticRegression(solver="liblinear", dual=True, max_iter=1_000, random_state=0)
        theirs.fit(matrix, targets[:, label])
        np.testing.assert_allclose(scores[:, label], theirs.decision_function(matrix), atol=1e-5)
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


def test_vectors_are_centred(start, read):
    examples, reader, inputs = read
    expected = inputs_of(start, examples).vectors - reader.center.numpy()
    np.testing.assert_allclose(inputs.vectors, expected / np.linalg.norm(expected, axis=1, keepdims=True), atol=1e-6)


def test_a_long_text_is_trained_on_by_its_head_and_tail(tiny_tokenizer):
    long = examples_of(tiny_tokenizer, ["또 보고 싶다", " ".join(TEXTS), "지루하다"])
    short = long.shortened(3)
    assert np.bincount(long.text_numbers)[1] > 3
    assert np.bincount(short.text_numbers).tolist() == [1, 3, 1]
    rows = np.array([2, 1])
    whole, part = long.batch(rows), short.batch(rows)
    assert part["sizes"] == (1, 3)
    kept = [0, 1, 2, whole["sizes"][1]]
    width = part["input_ids"].shape[1]
    assert torch.equal(part["input_ids"], whole["input_ids"][kept][:, :width])
    assert torch.equal(part["terms"], whole["terms"])


def test_what_nobody_has_learned_adds_nothing(tiny_tokenizer, read):
    _, reader, inputs = read
    model = fit(inputs, targets_of(2), 2, "words", 1.0, reader)
    others = examples_of(tiny_tokenizer, ["", "XYZ!?"])
    np.testing.assert_allclose(scores_of(model, others), model.vectors.bias.expand(2, 2).numpy(), atol=1e-6)


def test_a_saved_and_a_packed_model_score_alike(tiny_tokenizer, read, tmp_path):
    examples, reader, inputs = read
    vectors, words = (fit(inputs, targets_of(3), 3, column, 1.0, reader) for column in ("vectors", "words"))
    model = vectors.with_words(words, 0.5)
    save_model(tmp_path / "model", model, tiny_tokenizer)
    loaded, _ = load_model(tmp_path / "model", "linear")
    assert same_weights(loaded, model)
    assert read_config(tmp_path / "model")["head"]["num_terms"] == model.num_terms > 0
    pack(tmp_path / "model", tmp_path / "packed")
    packed, _ = load_model(tmp_path / "packed")
    assert torch.equal(packed.terms, model.terms)
    np.testing.assert_allclose(scores_of(packed, examples), scores_of(model, examples), atol=0.05)
    save_model(tmp_path / "words", words, tiny_tokenizer)
    alone, _ = load_model(tmp_path / "words")
    np.testing.assert_allclose(scores_of(alone, examples), scores_of(words, examples), atol=1e-6)


def test_of_many_rows_more_must_have_a_term(monkeypatch):
    inputs = inputs_with([number for number in range(4) for _ in range(number + 1)], np.zeros((10, 1)))
    assert Words(inputs.terms).ids.tolist() == [1, 2, 3]
    monkeypatch.setattr(linear, "_ROWS_PER_TERM", 4)
    assert Words(inputs.terms).ids.tolist() == [2, 3]  # three of ten rows


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
    texts = [str(number) for number in range(200)]
    choice = choose([inputs_with(words, vectors)], targets, 2, texts)
    assert (choice.words_share > 0) == words_tell
    assert (choice.gain[0] > 2 * choice.gain[1]) == words_tell
    alone = choose([inputs_with(words, vectors)], targets, 2, texts, ["words"])
    assert alone.words_share == 1
    np.testing.assert_array_equal(alone.scores, choice.trials["words"].scores)


def test_the_encoder_with_the_least_loss_is_chosen():
    rng = np.random.default_rng(2)
    targets = rng.integers(0, 2, 60)
    noise = rng.normal(size=(60, 3))
    candidates = [inputs_with([-1] * 60, noise + shift * targets[:, None]) for shift in (0, 3, 1)]
    choice = choose(candidates, targets, 2, [str(number) for number in range(60)])
    assert choice.encoder == 1
    assert choice.losses[1] == min(choice.losses) == choice.trials["vectors"].loss


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
    inputs = inputs_with([-1] * len(targets), np.random.default_rng(0).normal(size=(len(targets), 4)))
    choice = choose([inputs], np.array(targets), 2, texts)
    assert not choice.words_share
    assert np.isfinite(choice.scores).all()


def test_few_rows_have_a_usual_c_and_many_rows_their_own():
    rng = np.random.default_rng(0)
    chosen = []
    for count in (20, 200):
        targets = rng.integers(2, size=count)
        texts = [str(number) for number in range(count)]
        vectors = rng.normal(size=(count, 4))
        vectors[:, 0] = 0.05 * (targets + 0.5 * vectors[:, 0])  # the column that tells is small: C has to be large
        chosen.append(choose([inputs_with([-1] * count, vectors)], targets, 2, texts).trials["vectors"].c)
    few, many = chosen
    assert (few, many) == (3, 30)


def test_words_have_the_weight_of_the_largest_gain_that_is_sure():
    rng = np.random.default_rng(0)
    targets = np.arange(60) % 2
    vectors = np.stack([-(targets - 0.5), targets - 0.5], axis=1)  # right, and not sure
    noise = rng.normal(size=(60, 1)) * 4
    words = vectors * 6 + noise * np.array([-1, 1])  # sure, and not always right
    scores = {"vectors": vectors, "words": words}
    sure = {}
    for share in linear.WORD_SHARES:
        gains = linear.losses_of(vectors, targets) - linear.losses_of(linear.sum_of_scores(scores, share), targets)
        sure[share] = gains.mean() - 2 * sem(gains, ddof=0)
    share = linear.best_share(scores, targets)
    assert share == max(sure, key=sure.get)
    assert sure[share] > 0
    least = min(sure, key=lambda share: linear.losses_of(linear.sum_of_scores(scores, share), targets).mean())
    assert share < least
    assert linear.best_share({"vectors": vectors, "words": -words}, targets) == 0


@pytest.mark.parametrize("is_sparse", [True, False])
@pytest.mark.parametrize("c", [1.0, 300.0])
def test_few_rows_with_many_columns_have_the_model_of_scikit_learn(is_sparse, c):
    rng = np.random.default_rng(0)
    matrix = rng.normal(size=(40, 500)) * (rng.random((40, 500)) < 0.1)
    matrix[7] = matrix[8]  # rows that span less
    matrix[9] = 0
    targets = np.arange(40) % 3
    weights, bias = linear._Classifiers(sparse.csr_matrix(matrix) if is_sparse else matrix, targets, 4).fit(c)
    model = LogisticRegression(C=c, tol=1e-8, max_iter=20_000).fit(matrix, targets)
    assert weights[:3] == pytest.approx(model.coef_, abs=1e-2 * np.abs(model.coef_).max())
    found = rng.normal(size=(5, 500))
    differences = (found @ weights.T + bias)[:, :3] - model.decision_function(found)
    assert np.ptp(differences, axis=1) == pytest.approx(0, abs=0.05)
    assert not weights[3].any()  # a label that no row has


def test_words_of_every_row_say_nothing_of_three_labels():
    inputs = inputs_with([7] * 4, np.zeros((4, 2)))  # as 온다 in "비가 온다", "눈이 온다", "잠이 온다", "봄이 온다"
    targets = np.array([0, 1, 2, 0])
    matrix = Words(inputs.terms).columns(inputs.terms)
    np.testing.assert_array_equal(linear._evidence(matrix, [targets]), [1])
    for column in (matrix, sparse.hstack([matrix] * 5, format="csr"), np.zeros((4, 5))):  # 5: more than rows
        weights, _ = linear._Classifiers(column, targets, 3, weighs=sparse.issparse(column)).fit(1.0)
        np.testing.assert_allclose(weights, 0, atol=1e-3)
    assert np.isfinite(choose([inputs], targets, 3, ["비", "눈", "잠", "봄"]).scores).all()


def test_equal_vectors_are_usual_for_nothing():
    assert linear.usual_of(np.full((60, 4), 0.5, np.float32)) is None


def test_an_empty_fold_is_left_out():
    texts = [str(number) for number in (0, 1, 2, 3, 0, 1, 3, 0, 2, 3)]
    targets = np.array([2, 0, 1, 1, 2, 0, 2, 0, 1, 0])
    assert [len(test) for _, test in linear._folds(targets, texts)] == [2, 3, 5]
    assert np.isfinite(choose([inputs_with(range(10), np.zeros((10, 2)))], targets, 3, texts).scores).all()
