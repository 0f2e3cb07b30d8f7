"""Labels for texts: learning them from examples, keeping the best epoch, and giving them to new texts."""

import hashlib
import logging
import shutil
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Self, TypedDict, overload

import numpy as np
import safetensors
import safetensors.torch
import torch
import torch.nn.functional as F
from numpy.typing import NDArray
from safetensors import SafetensorError
from torch import Tensor, nn

from korbert.durable import write_whole
from korbert.errors import ModelError
from korbert.modeling import ClassificationModel, load_model, read_config
from korbert.processor import cores
from korbert.tasks.classification_settings import ClassificationSettings
from korbert.tasks.examples import Batches, Examples
from korbert.tasks.texts import as_texts
from korbert.tokenization import Tokenizer
from korbert.training.checkpoints import newest_step
from korbert.training.devices import Batch, autocast, choose_device, moved
from korbert.training.loop import fit
from korbert.training.plan import Checkpointing, TrainingOutput, TrainingPlan
from korbert.training.settings import PrecisionName

__all__ = [
    "Best",
    "Classifier",
    "Prediction",
    "classification_loss",
    "finetune",
    "load_best",
    "probabilities",
    "read_best",
]

_logger = logging.getLogger(__name__)

_SCORING_BATCH_SIZE = 256
_BEST = "best.safetensors"
_TEXTS_AT_ONCE = 4_096  # whose pieces are held in memory


class Prediction(TypedDict):
    """The likeliest label of a text, and how likely each one is."""

    label: str
    probabilities: dict[str, float]


@dataclass(frozen=True)
class Best:
    """The epoch (from 1) that got most validation examples right, `correct` of `count`; the earliest of equals."""

    epoch: int
    correct: int
    count: int

    @property
    def accuracy(self) -> float:
        return self.correct / self.count


def classification_loss(model: nn.Module, batch: Batch) -> dict[str, Tensor]:
    """{"loss": mean cross-entropy over the batch, in nats}. batch: as Examples.batch gives it."""
    return {"loss": F.cross_entropy(_logits(model, batch).float(), batch["labels"])}


def probabilities(
    model: nn.Module,
    examples: Examples,
    *,
    device: torch.device,
    precision: PrecisionName = "fp32",
    advance: Callable[[int], None] = lambda count: None,
) -> NDArray[np.float32]:
    """How likely each label is for each row: (N, C). The model is left in the mode it was in.

    advance: called with the number of rows after each batch.
    """
    found: list[NDArray[np.float32]] = []
    rows = list(examples.by_length(_SCORING_BATCH_SIZE))
    was_training = model.training
    model.eval()
    with torch.inference_mode(), autocast(device, precision):
        for numbers in rows:
            batch = moved(examples.batch(numbers), device)
            found.append(_logits(model, batch).float().softmax(dim=-1).cpu().numpy())
            advance(len(numbers))
    model.train(was_training)
    result = np.empty((len(examples), found[0].shape[1]), dtype=np.float32)
    result[np.concatenate(rows)] = np.concatenate(found)
    return result


def finetune(
    model: ClassificationModel,
    train: Examples,
    validation: Examples,
    settings: ClassificationSettings,
    *,
    learning_rate: float,
    seed: int,
    work: Path,
    metrics: Path,
    device: torch.device,
    description: str = "finetune",
) -> Best:
    """Trains `model`, and leaves it with the weights of its best epoch, in eval mode.

    work: a folder for checkpoints, `best.safetensors` and `timing.jsonl`; with the same folder a run that was cut off
    goes on where it was, and ends in the same bytes. metrics: as `fit` writes it, "heldout" at the end of each epoch.
    """
    batches = Batches(train, settings.batch_size, seed)
    if read_best(work) is None and (newest_step(work / "checkpoints") or 0) >= batches.steps_per_epoch:
        _logger.warning("%s: the weights of the best epoch are lost: training from the start", work)
        shutil.rmtree(work / "checkpoints")
    keeper = _Keeper(work, validation, device, settings.precision, batches.steps_per_epoch)
    checkpoints = Checkpointing(work / "checkpoints", settings.checkpoint_every)
    fit(
        model,
        batches,
        classification_loss,
        TrainingPlan(
            steps=settings.epochs * batches.steps_per_epoch,
            optimizer=settings.optimizer(learning_rate),
            seed=seed,
            precision=settings.precision,
            log_every=settings.log_every,
            evaluate_every=batches.steps_per_epoch,
        ),
        device=device,
        output=TrainingOutput(checkpoints, metrics, timing=work / "timing.jsonl"),
        evaluate=keeper,
        description=description,
    )
    return load_best(work, model)


def load_best(work: Path, model: ClassificationModel) -> Best:
    """The weights that `finetune` kept in `work`, into `model`, which is put in eval mode. ModelError without them."""
    best = read_best(work)
    if best is None:
        raise ModelError(f"{work / _BEST}: is absent or damaged: run the same command again, which makes it anew")
    model.load_state_dict(safetensors.torch.load_file(work / _BEST))
    model.eval()
    return best


def read_best(work: Path) -> Best | None:
    """What `finetune` kept in `work`; None where there is none, or where it is damaged, which is logged."""
    path = work / _BEST
    try:
        with safetensors.safe_open(path, framework="pt") as file:
            facts = file.metadata() or {}
            weights = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118 (no mapping)
        best = Best(*(int(facts[name]) for name in ("epoch", "correct", "count")))
        if facts["sha256"] != _digest(weights, best):
            raise ValueError("is not as it was written")
    except FileNotFoundError:
        return None
    except (OSError, ValueError, KeyError, SafetensorError) as error:
        _logger.warning("%s: damaged (%s)", path, error)
        return None
    return best


def _write_best(path: Path, model: nn.Module, best: Best) -> None:
    weights = {name: tensor.detach().cpu().contiguous() for name, tensor in model.state_dict().items()}
    facts = {"epoch": str(best.epoch), "correct": str(best.correct), "count": str(best.count)}
    write_whole(path, safetensors.torch.save(weights, metadata={**facts, "sha256": _digest(weights, best)}))


def _digest(weights: Mapping[str, Tensor], best: Best) -> str:
    """SHA-256 of the measure, and of all tensors with their names."""
    digest = hashlib.sha256(repr(best).encode())
    for name in sorted(weights):
        digest.update(f"{name} {weights[name].dtype} {tuple(weights[name].shape)}".encode())
        digest.update(weights[name].reshape(-1).view(torch.uint8).numpy().data)
    return digest.hexdigest()


class _Keeper:
    """Called by `fit` at the end of each epoch: measures, and keeps the weights if there are no better ones.

    Weights and measure are one file, replaced at once: whatever moment a run is cut off, they belong together, and a
    resumed run that passes an epoch's end again finds or writes the same.
    """

    def __init__(
        self, work: Path, validation: Examples, device: torch.device, precision: PrecisionName, steps_per_epoch: int
    ) -> None:
        self._work = work
        self._validation = validation
        self._device = device
        self._precision: PrecisionName = precision
        self._steps_per_epoch = steps_per_epoch

    def __call__(self, model: nn.Module, step: int) -> dict[str, float]:
        found = probabilities(model, self._validation, device=self._device, precision=self._precision)
        labels = self._validation.labels
        now = Best(step // self._steps_per_epoch, int((found.argmax(axis=1) == labels).sum()), len(labels))
        best = read_best(self._work)
        if best is None or (now.correct, -now.epoch) > (best.correct, -best.epoch):
            _write_best(self._work / _BEST, model, now)
        right = found[np.arange(len(labels)), labels].astype(np.float64)
        loss = float(-np.log(np.maximum(right, np.finfo(np.float32).tiny)).mean())
        return {"epoch": now.epoch, "loss": loss, "accuracy": now.accuracy}


def _logits(model: nn.Module, batch: Batch) -> Tensor:
    inputs = {name: batch[name] for name in ("input_ids", "attention_mask", "boundaries", "padded")}
    scores: Tensor = model(**inputs)
    return scores  # (B, C)


class Classifier:
    """A model folder of kind "classification" at work: texts in, labels out.

        >>> classifier = Classifier.load("artifacts/demo/nsmc")
        >>> classifier.predict("정말 좋은 영화")
        {"label": "긍정", "probabilities": {"부정": 0.04, "긍정": 0.96}}

    max_length: pieces of a text, special tokens included; the rest is cut off. None: as many as the model's positions.
    name: what errors call the model; `load` gives it its folder's.
    """

    name = "the model"

    def __init__(self, model: ClassificationModel, tokenizer: Tokenizer, max_length: int | None = None) -> None:
        self.model = model.eval()
        self.tokenizer = tokenizer
        self.max_length = max_length or model.config.max_position_embeddings

    @classmethod
    def load(cls, folder: str | Path, device: str = "auto") -> Self:
        """From a folder that korbert has written. ModelError where it is none, or of another kind."""
        model, tokenizer = load_model(folder, "classification", choose_device(device))
        found = cls(model, tokenizer, read_config(folder)["task"].get("max_length"))
        found.name = str(folder)
        return found

    @property
    def labels(self) -> tuple[str, ...]:
        return self.model.labels

    @overload
    def predict(self, texts: str) -> Prediction: ...  # type: ignore[overload-overlap]
    @overload
    def predict(self, texts: Iterable[str]) -> list[Prediction]: ...
    def predict(self, texts: str | Iterable[str]) -> Prediction | list[Prediction]:
        """The prediction of a text, or one for each of many, in order. Any text will do, an empty one too.

        SettingsError for what is no text. ModelError where the model gives scores that are no numbers.
        """
        given, single = as_texts(texts, "texts")
        found: list[Prediction] = []
        for start in range(0, len(given), _TEXTS_AT_ONCE):
            found += self._predict(given[start : start + _TEXTS_AT_ONCE])
        return found[0] if single else found

    def _predict(self, texts: list[str]) -> list[Prediction]:
        # Threads of Kiwi's pay for many alone: it would load anew to have them.
        workers = cores() if len(texts) >= _SCORING_BATCH_SIZE else 0
        encodings = self.tokenizer.encode_batch(texts, max_length=self.max_length, workers=workers)
        rows = ((encoding.input_ids, encoding.boundaries) for encoding in encodings)
        examples = Examples.of_rows(rows, [0] * len(texts), self.tokenizer.pad_id)
        found = probabilities(self.model, examples, device=next(self.model.parameters()).device)
        if not np.isfinite(found).all():
            raise ModelError(f"{self.name}: gives scores that are no numbers: train it anew, at a lower rate")
        return [self._prediction(row) for row in found]

    def _prediction(self, row: NDArray[np.float32]) -> Prediction:
        shares = dict(zip(self.labels, row.tolist(), strict=True))
        return {"label": self.labels[int(row.argmax())], "probabilities": shares}
