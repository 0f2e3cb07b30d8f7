"""The table of stages, in the order in which they run."""

from collections.abc import Mapping
from typing import Any

from corpus.settings import AnalyzeSettings, CleanSettings
from korbert.tasks.korquad.settings import KorquadSettings
from korbert.tasks.nsmc.settings import NsmcSettings
from pipelines.stages import Help, Stage, figures
from pipelines.stages.settings import PretrainStage, ShardStage, VocabStage

__all__ = ["STAGES"]

_TRAINING = ("torch", "numpy", "kiwipiepy", "kiwipiepy_model", "sentencepiece")


def _without_pairs(section: dict[str, Any], recipe: Mapping[str, Any]) -> None:
    """Sources of clean with `pairs = false` make no sentence pairs, unless the section says which do not."""
    clean = recipe.get("clean")
    sources = clean.get("sources") if isinstance(clean, dict) else None
    tables = [source for source in sources if isinstance(source, dict)] if isinstance(sources, list) else []
    pairs = section.setdefault("pairs", {})
    if isinstance(pairs, dict):
        pairs.setdefault("without", [str(source.get("name")) for source in tables if source.get("pairs") is False])


def _fits_the_encoder(name: str, max_length: int, others: Mapping[str, Any]) -> None:
    positions = others["pretrain"].encoder.max_position_embeddings
    if max_length > positions:
        raise ValueError(
            f"{name}.max_length {max_length} is more than pretrain.encoder.max_position_embeddings "
            f"{positions}: lower the one or raise the other"
        )


def _check_korquad(settings: KorquadSettings, others: Mapping[str, Any]) -> None:
    if settings.encoder is None:
        _fits_the_encoder("korquad", settings.max_length, others)


STAGES: dict[str, Stage] = {
    stage.name: stage
    for stage in (
        Stage(
            "clean",
            1,
            CleanSettings,
            "pipelines.stages.clean",
            Help(
                "Raw files -> documents worth learning from.",
                "the files of [[clean.sources]] and [[clean.evaluation]]; filters, masks and duplicates are set in "
                "[clean]",
                "documents/, and dropped/ with the reason of each",
                "korbert clean mine.toml --preview 300",
            ),
            "Documents worth learning from",
            libraries=("pyarrow", "duckdb"),
            patterns=lambda settings: dict(settings.patterns),
            remote=True,
            page="pipelines.reports.clean",
            figures=figures.clean,
            preview="pipelines.previewing:preview_stage",
        ),
        Stage(
            "analyze",
            1,
            AnalyzeSettings,
            "pipelines.stages.analyze",
            Help(
                "Documents -> sentences and morphemes (Kiwi).",
                "the documents of clean, and the user dictionary of [analyze]",
                "morphemes/: form, tag, span, sentence and eojeol of each",
                "korbert analyze mine.toml --workers 8",
            ),
            "Sentences and morphemes, by Kiwi",
            reads=("clean",),
            libraries=("kiwipiepy", "kiwipiepy_model", "pyarrow"),
            patterns=lambda settings: {"user_words": settings.user_words} if settings.user_words else {},
            page="pipelines.reports.analyze",
            figures=figures.analyze,
        ),
        Stage(
            "vocab",
            1,
            VocabStage,
            "pipelines.stages.vocab",
            Help(
                "Morphemes -> vocabulary and tokenizer.",
                "the morphemes of analyze; the size is vocab.size",
                "tokenizer/, counts.parquet and coverage.json",
                "korbert vocab mine.toml --set vocab.size=16000",
            ),
            "The pieces, learned from the morphemes",
            reads=("analyze",),
            libraries=("sentencepiece", "pyarrow", "duckdb"),
            page="pipelines.reports.vocab",
            figures=figures.vocab,
        ),
        Stage(
            "shard",
            1,
            ShardStage,
            "pipelines.stages.shard",
            Help(
                "Morphemes -> ids in memory-mapped shards.",
                "the morphemes of analyze and the tokenizer of vocab",
                "train/*.arrow and heldout/*.arrow",
                "korbert shard mine.toml",
            ),
            "Documents as ids",
            reads=("analyze", "vocab"),
            libraries=("sentencepiece", "pyarrow", "duckdb"),
            page="pipelines.reports.shard",
            figures=figures.shard,
        ),
        Stage(
            "pretrain",
            1,
            PretrainStage,
            "pipelines.stages.pretrain",
            Help(
                "Shards -> a model that has learned to fill gaps.",
                "the shards and the tokenizer; encoder, phases, masking and optimizer are set in [pretrain]",
                "model/, metrics.jsonl and scores.json",
                "korbert pretrain mine.toml --set pretrain.phases.0.steps=500",
            ),
            "Masked pieces and next sentences",
            reads=("shard", "vocab"),
            libraries=("torch", "numpy"),
            trains=True,
            optional=True,
            derive=_without_pairs,
            page="pipelines.reports.pretrain",
            result="nats, held-out MLM loss",
            figures=figures.pretrain,
        ),
        Stage(
            "nsmc",
            1,
            NsmcSettings,
            "pipelines.stages.nsmc",
            Help(
                "Fine-tune and score on NSMC (movie reviews).",
                "the pretrained model, and the files of [nsmc]",
                "model/, scores.json with baselines, and predictions.parquet",
                "korbert nsmc mine.toml --data ~/data",
            ),
            "Whether a film review is positive",
            reads=("clean", "vocab", "pretrain"),
            libraries=(*_TRAINING, "scikit-learn", "pandas"),
            trains=True,
            optional=True,
            patterns=lambda settings: {"train": settings.train, "test": settings.test},
            check=lambda settings, others: _fits_the_encoder("nsmc", settings.max_length, others),
            page="pipelines.reports.nsmc",
            result="NSMC accuracy",
            figures=figures.nsmc,
        ),
        Stage(
            "korquad",
            2,
            KorquadSettings,
            "pipelines.stages.korquad",
            Help(
                "Fine-tune and score on KorQuAD (reading comprehension).",
                "the pretrained model, and the files of [korquad]",
                "model/, predictions.json, scores.json, and submission/, a folder to hand in",
                "korbert korquad mine.toml --data ~/data",
            ),
            "Where in a text the answer stands",
            reads=("vocab", "pretrain"),
            unread=lambda settings: ("pretrain",) if settings.init == "scratch" else (),
            libraries=_TRAINING,
            trains=True,
            optional=True,
            patterns=lambda settings: settings.patterns(),
            check=_check_korquad,
            page="pipelines.reports.korquad",
            result="KorQuAD F1 (of 100)",
            figures=figures.korquad,
            products={"KorQuAD predictions": "predictions.json"},
        ),
    )
}
