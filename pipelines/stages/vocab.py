"""vocab: morphemes -> counts, a tokenizer learned from them, and how well it covers text that it has not seen."""

import json
from pathlib import Path

from pydantic import ValidationError

from corpus.counts import count, coverage, form_counts, usage
from corpus.settings import AnalyzeSettings
from korbert.errors import CorpusError, SettingsError
from korbert.progress import track
from korbert.tokenization import Analyzer, Tokenizer
from korbert.tokenization.learning import learn
from korbert.tokenization.settings import AnalyzerOptions
from korbert.tokenization.user_words import read_user_words
from pipelines import artifacts
from pipelines.runtime import Runtime
from pipelines.stages import Counts, Inputs
from pipelines.stages.analyze import USER_WORDS, check_versions
from pipelines.stages.settings import VocabStage


def _analyzer(analyzed: Path) -> Analyzer:
    """What made the morphemes, so that the tokenizer makes the same of other text.

    Raises ArtifactError where another Kiwi is installed: the tokenizer would be of neither.
    """
    record = artifacts.read_json(analyzed / artifacts.RECORD) or {}
    settings = AnalyzeSettings.model_validate(record["settings"])
    options = settings.options
    if settings.user_words:
        options = options.model_copy(update={"user_words": read_user_words(analyzed / USER_WORDS)})
    analyzer = Analyzer(options)
    check_versions(analyzed, record, analyzer.versions, "is installed")
    return analyzer


def _with_user_words(settings: VocabStage, options: AnalyzerOptions) -> VocabStage:
    """The words that Kiwi was told of stay whole."""
    words = tuple(dict.fromkeys([*settings.words, *(word.form for word in options.user_words)]))
    try:
        return VocabStage.model_validate(settings.model_dump() | {"words": words})
    except ValidationError as error:
        raise SettingsError(f"vocab, with the words of analyze.user_words: {error.errors()[0]['msg']}") from error


def run(settings: VocabStage, inputs: Inputs, output: Path, runtime: Runtime) -> Counts:
    """Writes counts.parquet, tokenizer/ and coverage.json."""
    analyzed = inputs.artifacts["analyze"]
    morphemes, seed, share = analyzed / "morphemes", settings.seed, settings.heldout_share
    analyzer = _analyzer(analyzed)
    counted = count(morphemes, output, seed=seed, heldout_share=share, workers=runtime.units)
    settings = _with_user_words(settings, analyzer.options)
    with track("vocab: learn", total=None, unit="pieces"):
        try:
            model = learn(form_counts(output / "counts.parquet", settings, settings.min_documents), settings)
        except CorpusError as error:
            raise CorpusError(f"{morphemes}: {error}") from error
    tokenizer = Tokenizer.build(model, settings, analyzer.options, analyzer.versions)
    tokenizer.take_probe()
    tokenizer.save(output / "tokenizer")
    found = coverage(morphemes, tokenizer, output, seed=seed, heldout_share=share, workers=runtime.units)
    if not found["all"]["documents"]:
        raise CorpusError(
            f"{morphemes}: none of its {counted['documents']:,} documents is held out by heldout_share {share}, "
            "and nothing could be measured: raise it, or bring more text"
        )
    found["used"] = usage(output / "counts.parquet", tokenizer)
    text = json.dumps(found, ensure_ascii=False, indent=1)
    (output / "coverage.json").write_text(text + "\n", encoding="utf-8")
    return {"size": tokenizer.vocab_size, **counted}
