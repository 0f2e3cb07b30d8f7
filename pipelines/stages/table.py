"""The table of stages, in running order, and the stages of recipe sections [tasks.NAME]."""

import re
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from korbert.folders import model_folder, tokenizer_folder
from korbert.messages import Message
from korbert.pipelines.artifacts import Finder, Help, Sections, Stage
from korbert.system import JsonObject
from korbert.tasks import sets

if TYPE_CHECKING:
    from pydantic import BaseModel

    from korbert.corpus.corpus_settings import ShardSettings
    from korbert.pipelines.stages.stage_settings import PretrainStage
    from korbert.tasks.kinds.sections import TaskSection

LIBRARIES = ("torch", "numpy", "kiwipiepy", "kiwipiepy_model", "sentencepiece", "scikit-learn", "scipy")
TASK = "tasks."  # prefix of the stage names of sections [tasks.NAME]
TASK_RUN = "korbert.pipelines.stages.finetuning:run"
TASK_PAGE = "korbert.pipelines.reports.artifacts.task"


def _without_pairs(section: JsonObject, others: Sections) -> None:
    """Excludes the sources of clean with `pairs = false` from sentence pairs, unless the section lists its own."""
    pairs = section.setdefault("pairs", {})
    if isinstance(pairs, dict):
        pairs.setdefault("without", [source.name for source in others["clean"].sources if not source.pairs])


def _same_documents_held_out(settings: "ShardSettings", others: Sections) -> None:
    """Raises ValueError if shard holds out other documents than vocab, which would have counted some of them."""
    for name in ("seed", "heldout_share"):
        shard_value = getattr(settings, name)
        vocab_value = getattr(others["vocab"], name)
        if shard_value != vocab_value:
            raise ValueError(
                Message(
                    "{name} {ours} is not vocab.{name} {of_vocab}, so that held-out documents would be counted for"
                    " the vocabulary: set {name} once, at the top of the recipe",
                    name=name, ours=shard_value, of_vocab=vocab_value,
                )
            )  # fmt: skip


def _sample_is_one(settings: "PretrainStage", others: Sections) -> None:
    """Raises ValueError for too many negatives. The size of an existing tokenizer is checked by pretrain itself."""
    vocab = others["vocab"]
    if settings.head.kind == "sampled" and not vocab.tokenizer and settings.head.negatives >= vocab.size:
        raise ValueError(
            Message(
                "head.negatives {negatives}: the vocabulary has at most {size} entries (vocab.size): use fewer, or "
                'kind = "full"',
                negatives=settings.head.negatives, size=vocab.size,
            )
        )  # fmt: skip


def is_task(name: str) -> bool:
    """Whether the name is that of a stage of a section [tasks.NAME]."""
    return re.fullmatch(re.escape(TASK) + "[a-z0-9_-]+", name) is not None


def _starts_from_another(settings: "TaskSection") -> bool:
    return settings.init not in ("pretrain", "scratch")


def _fits_the_encoder(settings: "TaskSection", others: Sections) -> None:
    """Raises ValueError if texts do not fit into the encoder of pretrain, unless the task starts from another model."""
    if not _starts_from_another(settings):
        length = getattr(settings, "max_length", 0)
        positions = others["pretrain"].encoder.max_position_embeddings
        if length > positions:
            raise ValueError(
                Message(
                    "max_length {length} is more than pretrain.encoder.max_position_embeddings {positions}: "
                    "lower the former or raise the latter",
                    length=length, positions=positions,
                )
            )  # fmt: skip


def task_stage(
    name: str,
    settings: "str | type[BaseModel]",
    *,
    title: str = "",
    asks: str = "",
    products: Mapping[str, str] | None = None,
) -> Stage:
    """Returns the stage of a task: tasks.NAME, or one of its own. It starts from pretrain, or from the model in `init`.

    settings: a class with `init` ("pretrain", "scratch", or a folder relative to the data), `unseen`, `precision`,
    `threads` and `patterns()`: role -> file pattern. It may have a `max_length` in pieces. title: of the data
    set. asks: what it asks for; "": the title. products: as in Stage.
    """
    title = title or name.removeprefix(TASK)
    about = Help(
        f"Fine-tune and score on {title}.",
        f"the pretrained model or that of {name}.init, and the files of [{name}]",
        ", ".join(["model/, scores.json and predictions.jsonl", *(products or {}).values()]),
        f"korbert {f'tasks mine.toml {title}' if is_task(name) else f'{name} mine.toml --data ~/data'}",
    )
    reads = ("clean", "pretrain", "vocab")

    def unread(settings: "TaskSection") -> tuple[str, ...]:
        return reads if _starts_from_another(settings) else () if settings.unseen else ("clean",)

    def found(settings: "TaskSection", data: Path) -> Mapping[str, tuple[Path, ...]]:
        set_name = getattr(settings, "set", "")
        return dict(sets.loading.files_at_hand(sets.known_set(set_name), data).items()) if set_name else {}

    def folders(settings: "TaskSection") -> Mapping[str, tuple[str, Finder]]:
        named = {
            "init": settings.init if _starts_from_another(settings) else "",
            "embedder": getattr(settings, "embedder", ""),
        }
        named |= {f"teacher_{number}": name for number, name in enumerate(getattr(settings, "teachers", ()), 1)}
        return {role: (name, model_folder) for role, name in named.items() if name}

    return Stage(
        name, 14, settings, TASK_RUN, about, asks or title, reads=reads, unread=unread, libraries=LIBRARIES,
        trains=True, optional=True, patterns=lambda settings: settings.patterns(), found=found,
        folders=folders, check=_fits_the_encoder, page=TASK_PAGE, products=products or {},
    )  # fmt: skip


def stage_named(name: str) -> Stage | None:
    """Returns the entry of a stage by its name alone, as for an artifact without its recipe; None if there is none."""
    return task_stage(name, "pydantic:BaseModel") if is_task(name) else STAGES.get(name)


STAGES: dict[str, Stage] = {
    stage.name: stage
    for stage in (
        Stage(
            "clean",
            5,
            "korbert.corpus.corpus_settings:CleanSettings",
            "korbert.pipelines.stages.clean:run",
            Help(
                "Clean and deduplicate documents.",
                "the files of [[clean.sources]] and [[clean.evaluation]]; filters, masking and deduplication are set "
                "in [clean]",
                "documents/, and dropped/ with the reason for each",
                "korbert clean mine.toml --preview 300",
            ),
            Message("Cleaned documents"),
            libraries=("pyarrow", "duckdb"),
            patterns=lambda settings: dict(settings.patterns),
            page="korbert.pipelines.reports.artifacts.clean",
            preview="korbert.pipelines.reports.pages.preview:preview_stage",
        ),
        Stage(
            "analyze",
            2,
            "korbert.corpus.corpus_settings:AnalyzeSettings",
            "korbert.pipelines.stages.analyze:run",
            Help(
                "Split documents into sentences and morphemes (Kiwi).",
                "the documents of clean, and the user dictionary of [analyze]",
                "morphemes/: form, tag, span, sentence and eojeol of each",
                "korbert analyze mine.toml --workers 8",
            ),
            Message("Sentences and morphemes (Kiwi)"),
            reads=("clean",),
            libraries=("kiwipiepy", "kiwipiepy_model", "pyarrow"),
            patterns=lambda settings: {"user_words": settings.user_words} if settings.user_words else {},
            page="korbert.pipelines.reports.artifacts.analyze",
        ),
        Stage(
            "vocab",
            1,
            "korbert.pipelines.stages.stage_settings:VocabStage",
            "korbert.pipelines.stages.vocab:run",
            Help(
                "Build the vocabulary and the tokenizer.",
                "the morphemes of analyze, and a tokenizer if vocab.tokenizer names one; the size is vocab.size",
                "tokenizer/, counts.parquet and coverage.json",
                "korbert vocab mine.toml --set vocab.size=16000",
            ),
            Message("Vocabulary and tokenizer"),
            reads=("analyze",),
            libraries=("sentencepiece", "pyarrow", "duckdb"),
            folders=lambda settings: (
                {"tokenizer": (settings.tokenizer, tokenizer_folder)} if settings.tokenizer else {}
            ),
            inspect="korbert.pipelines.stages.vocab:inspect",
            page="korbert.pipelines.reports.artifacts.vocab",
        ),
        Stage(
            "shard",
            1,
            "korbert.corpus.corpus_settings:ShardSettings",
            "korbert.pipelines.stages.shard:run",
            Help(
                "Write documents as piece ids in memory-mapped shards.",
                "the morphemes of analyze and the tokenizer of vocab",
                "train/*.arrow and heldout/*.arrow",
                "korbert shard mine.toml",
            ),
            Message("Documents as ids"),
            reads=("analyze", "vocab"),
            libraries=("sentencepiece", "pyarrow"),
            check=_same_documents_held_out,
            page="korbert.pipelines.reports.artifacts.shard",
        ),
        Stage(
            "pretrain",
            4,
            "korbert.pipelines.stages.stage_settings:PretrainStage",
            "korbert.pipelines.stages.pretrain:run",
            Help(
                "Pretrain an encoder.",
                "the shards and the tokenizer; encoder, phases, masking and optimizer are set in [pretrain]",
                "model/, metrics.jsonl, samples.jsonl and scores.json",
                "korbert pretrain mine.toml --set pretrain.phases.0.steps=500",
            ),
            Message("Masked language modelling and next sentence prediction"),
            reads=("shard", "vocab"),
            libraries=("torch", "numpy"),
            more_libraries=lambda settings: ("kiwipiepy", "kiwipiepy_model") if settings.embeddings == "kiwi" else (),
            trains=True,
            makes_rows=True,
            optional=True,
            folders=lambda settings: {
                role: (folder, model_folder)
                for role, folder in (("init", settings.init), ("teacher", settings.distill.teacher))
                if folder
            },
            derive=_without_pairs,
            check=_sample_is_one,
            inspect="korbert.pipelines.stages.pretrain:inspect",
            page="korbert.pipelines.reports.artifacts.pretrain",
        ),
        task_stage(
            "nsmc", "korbert.tasks.kinds.sections:NsmcSection", title="NSMC", asks=Message("Sentiment of movie reviews")
        ),
        task_stage(
            "korquad",
            "korbert.tasks.kinds.sections:KorquadSection",
            title="KorQuAD",
            asks=Message("Extractive question answering"),
            products={"KorQuAD predictions": "predictions.json", "KorQuAD submission": "submission/"},
        ),
    )
}
