"""A linear model on words and on vectors of a frozen encoder: a classifier that is fitted in seconds."""

from collections.abc import Sequence
from typing import Any, ClassVar, Literal, NamedTuple, Self

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from korbert.errors import ModelError
from korbert.modeling.adapters.transformers_encoder import TransformersEncoder, encoder_of
from korbert.modeling.config import AnyConfig
from korbert.modeling.encoder import Encoder
from korbert.modeling.heads import mean_pooling
from korbert.modeling.model_base import AnyModel

HASH_BITS = 20  # of a term, below its group
TERMS_VERSION = 2  # of what terms are (korbert/tasks/terms.py)
_PERCENTILES = 101
_SLOTS_AT_ONCE = 16_384  # of windows, so that a batch of long texts does not fill memory


class KnownTerms(NamedTuple):
    """Which terms of rows the model has weights for. used: (n,) bool, of all terms.

    places, values: the places of the weights of those terms in the model, and the TF-IDF of the terms.
    """

    used: Tensor
    places: Tensor
    values: Tensor


class LinearModel(AnyModel):
    """Scores of rows: a bias, plus weights of their terms, plus weights of the vectors of their texts.

    1. Words: the hashed terms of a row (korbert/tasks/terms.py) that the model knows; 1 + log(count), times the inverse
       document frequency, each group scaled to length 1, as TfidfVectorizer of scikit-learn does with sublinear_tf.
    2. Vectors: the pieces of each window are pooled and scaled to length 1, those of a text averaged and scaled again;
       then `center` is subtracted, and the rest scaled to length 1. Of two texts a and b: a, b, |a - b| and a x b.

    Text vectors of an encoder that was not trained to compare texts all point in much the same direction, which hides
    their differences (Ethayarajh 2019); there, `center` is the mean vector of the texts of training, else 0.

    num_outputs: scores per row. num_terms: terms with weights. num_texts: texts per row, 1 or 2. pooling: of pieces.
    hash_bits: the bits of a term below its group. terms_version: the version of the rules that make terms; ModelError
    if the weights are for terms of another version. reads_vectors: if False, the vectors have no weights, and are not
    computed. knows_usual: whether `percentiles` can tell how far a text is from those of training (see `set_usual`).
    """

    kind: ClassVar[str] = "linear"
    exported: ClassVar[str] = "ForSequenceClassification"
    pipeline: ClassVar[str] = "text-classification"
    saved: ClassVar[tuple[str, ...]] = (
        "num_outputs", "num_terms", "num_texts", "pooling", "hash_bits", "terms_version", "reads_vectors",
        "knows_usual",
    )  # fmt: skip

    def __init__(
        self,
        config: AnyConfig,
        num_outputs: int,
        num_terms: int,
        num_texts: int = 1,
        pooling: Literal["mean", "first"] = "mean",
        hash_bits: int = HASH_BITS,
        terms_version: int = 1,
        reads_vectors: bool = True,
        knows_usual: bool = False,
        generator: torch.Generator | None = None,
        encoder: Encoder | TransformersEncoder | None = None,
    ) -> None:
        super().__init__()
        self.config = config
        self.num_outputs = num_outputs
        self.num_terms = num_terms
        self.num_texts = num_texts
        self.pooling = pooling
        self.hash_bits = hash_bits
        self.terms_version = terms_version
        if num_terms and terms_version != TERMS_VERSION:
            raise ModelError(
                "the words of a linear model are of version {version}, and those of this korbert of version {own}: "
                "fine-tune it again",
                version=terms_version, own=TERMS_VERSION,
            )  # fmt: skip
        self.reads_vectors = reads_vectors
        self.knows_usual = knows_usual
        if knows_usual:
            size = config.hidden_size
            self._register_usual(torch.zeros(size), torch.zeros(size, size), torch.zeros(_PERCENTILES))
        self.terms = nn.Buffer(torch.zeros(num_terms, dtype=torch.int32))  # in ascending order
        self.frequencies = nn.Buffer(torch.ones(num_terms))  # inverse document frequencies
        self.center = nn.Buffer(torch.zeros(config.hidden_size))
        self.words = nn.Parameter(torch.zeros(num_terms, num_outputs), requires_grad=False)
        width = config.hidden_size if num_texts == 1 else 4 * config.hidden_size
        self.vectors = nn.Linear(width, num_outputs).requires_grad_(False)
        self.encoder = encoder_of(config, generator) if encoder is None else encoder

    @classmethod
    def on(cls, start: Any, num_outputs: int, num_terms: int, num_texts: int) -> Self:
        """Builds a model whose weights are not fitted yet on the encoder of `start`, with the pooling of `start`.

        The center is that of `start` if it is a LinearModel, else 0. The weights are on the device of the encoder.
        """
        pooling: Any = getattr(start, "pooling", "mean")
        model = cls(
            start.config, num_outputs, num_terms, num_texts, pooling, terms_version=TERMS_VERSION, encoder=start.encoder
        )
        model = model.to(next(start.encoder.parameters(), model.center).device)
        if isinstance(start, LinearModel):
            model.center.copy_(start.center)
        return model

    def with_words(self, other: "LinearModel", share: float) -> "LinearModel":
        """Mixes in a model of words: the scores are (1 - share) x those of `self` + share x those of `other`.

        The new model has the encoder of `self`.
        """
        model = self._with_terms_of(other)
        model.words.data.copy_(share * other.words)
        model.vectors.weight.data.copy_((1 - share) * self.vectors.weight)
        model.vectors.bias.data.copy_((1 - share) * self.vectors.bias + share * other.vectors.bias)
        return model

    def scaled(self, factor: float, shift: Tensor | float = 0.0) -> "LinearModel":
        """Returns a model with the same encoder whose scores are factor x those of `self` + shift.

        shift: one number, or (num_outputs,).
        """
        model = self._with_terms_of(self)
        model.reads_vectors = self.reads_vectors
        for target, weights in zip(model.head_weights(), self.head_weights(), strict=True):
            target.data.copy_(factor * weights)
        model.vectors.bias.data.add_(shift)
        return model

    def head_weights(self) -> tuple[Tensor, ...]:
        """The weights that scores are linear in."""
        return self.words, self.vectors.weight, self.vectors.bias

    def _with_terms_of(self, other: "LinearModel") -> "LinearModel":
        """Builds a model on the encoder of `self`, for the terms of `other`; its weights are not set yet."""
        model = LinearModel.on(self, self.num_outputs, other.num_terms, self.num_texts)
        model.terms.copy_(other.terms)
        model.frequencies.copy_(other.frequencies)
        return model.eval()

    def set_usual(self, mean: Tensor, whitening: Tensor, distances: Tensor) -> None:
        """Records how the text vectors of training are distributed, for `percentiles`.

        mean: (D,); whitening: (D, D), which makes the vectors of training uncorrelated, with deviation 1. distances:
        (101,) percentiles of their distances from the mean.
        """
        self.knows_usual = True
        self._register_usual(*(part.float().to(self.center.device) for part in (mean, whitening, distances)))

    def _register_usual(self, mean: Tensor, whitening: Tensor, distances: Tensor) -> None:
        self.usual = nn.Buffer(mean)
        self.whitening = nn.Buffer(whitening)
        self.distances = nn.Buffer(distances)

    def percentiles(self, texts: Tensor) -> Tensor:
        """How far each row is from the texts of training, as a percentile of their distances: (B,), 0 to 100.

        Of two texts, the larger distance counts. texts: from `text_vectors`.
        """
        vectors = texts.reshape(-1, self.num_texts, len(self.usual))
        distances = ((vectors - self.usual) @ self.whitening).norm(dim=-1).amax(dim=-1)
        return torch.searchsorted(self.distances, distances, right=True).sub(1).clamp(min=0).to(texts.dtype)

    def forward(
        self, input_ids: Tensor, attention_mask: Tensor, token_type_ids: Tensor | None = None,
        boundaries: Tensor | None = None, *, lengths: Sequence[int] = (), text_numbers: Tensor,
        terms: Tensor, counts: Tensor, rows: Tensor, with_percentiles: bool = False,
    ) -> Tensor:  # fmt: skip
        """Scores, (B, num_outputs). with_percentiles: appends a column of `percentiles` if the model reads vectors.

        input_ids, attention_mask, boundaries: (W, T), the windows of all texts. text_numbers: (W,) of each window, the
        number of its row x num_texts + that of its text in the row. terms, counts, rows: (n,), the terms of all rows,
        row by row, how often each occurs in its row, and the row.
        """
        text_vectors = (
            self.text_vectors(input_ids, attention_mask, boundaries, text_numbers) if self.reads_vectors else None
        )
        vectors = None if text_vectors is None else self.row_vectors(text_vectors)
        scores = self.scores(int(text_numbers.max()) // self.num_texts + 1, vectors, terms, counts, rows)
        if text_vectors is None or not with_percentiles:
            return scores
        return torch.cat([scores, self.percentiles(text_vectors)[:, None]], dim=1)

    def scores(self, num_rows: int, vectors: Tensor | None, terms: Tensor, counts: Tensor, rows: Tensor) -> Tensor:
        """As `forward`, from vectors of rows that are computed already; None for a model of words alone."""
        scores = self.word_scores(terms, counts, rows, num_rows)
        return scores + (self.vectors.bias if vectors is None else self.vectors(vectors))

    def text_vectors(
        self, input_ids: Tensor, attention_mask: Tensor, boundaries: Tensor | None, text_numbers: Tensor
    ) -> Tensor:
        """The vectors of the texts of rows, side by side, before they are centred: (B, num_texts x D)."""
        pooled = []
        windows_at_once = max(1, _SLOTS_AT_ONCE // input_ids.shape[1])
        for start in range(0, len(input_ids), windows_at_once):
            part = slice(start, start + windows_at_once)
            mask = attention_mask[part]
            hidden = self.encoder(input_ids[part], mask, None, None if boundaries is None else boundaries[part])
            pooled.append(hidden[:, 0] if self.pooling == "first" else mean_pooling(hidden, mask))
        windows = F.normalize(torch.cat(pooled).float(), dim=-1)
        sums = windows.new_zeros(int(text_numbers.max()) + 1, windows.shape[1]).index_add(0, text_numbers, windows)
        return F.normalize(sums, dim=-1).view(-1, self.num_texts * windows.shape[1])

    def row_vectors(self, texts: Tensor) -> Tensor:
        """The vectors of rows, (B, D) or (B, 4 x D). texts: from `text_vectors`."""
        centred = [F.normalize(part - self.center, dim=-1) for part in texts.chunk(self.num_texts, dim=-1)]
        if self.num_texts == 1:
            return centred[0]
        first, second = centred
        return torch.cat([first, second, (first - second).abs(), first * second], dim=-1)

    def word_scores(self, terms: Tensor, counts: Tensor, rows: Tensor, num_rows: int) -> Tensor:
        """What the known terms add to the scores, (B, num_outputs)."""
        if not self.num_terms:
            return self.words.new_zeros(num_rows, self.num_outputs)
        known_terms = self.known_terms(terms, counts, rows, num_rows)
        firsts = torch.searchsorted(rows[known_terms.used], torch.arange(num_rows, device=rows.device))
        return F.embedding_bag(
            known_terms.places, self.words, firsts, mode="sum", per_sample_weights=known_terms.values
        )

    def known_terms(self, terms: Tensor, counts: Tensor, rows: Tensor, num_rows: int) -> "KnownTerms":
        """Looks up which terms have weights, and computes their TF-IDF. Arguments as in `word_scores`."""
        if not self.num_terms:
            return KnownTerms(torch.zeros_like(terms, dtype=torch.bool), terms[:0], counts[:0])
        places = torch.searchsorted(self.terms, terms.int()).clamp(max=self.num_terms - 1)
        is_known = self.terms[places] == terms
        places, counts, rows, terms = places[is_known], counts[is_known], rows[is_known], terms[is_known]
        values = (1 + counts.log()) * self.frequencies[places]
        # Each group of a row is scaled to length 1.
        num_groups = int(self.terms[-1] >> self.hash_bits) + 1
        groups = rows * num_groups + (terms >> self.hash_bits)
        squares = values.new_zeros(num_rows * num_groups).index_add(0, groups, values.square())
        return KnownTerms(is_known, places, values / squares.sqrt()[groups])
