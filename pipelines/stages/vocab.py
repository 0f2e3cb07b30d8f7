"""vocab: morphemes -> counts, a tokenizer learned from them, and its coverage of held-out text.

With vocab.tokenizer nothing is learned: that tokenizer is extended with words for the new text.
"""

from pathlib import Path

from pydantic import ValidationError

from korbert.corpus.corpus_settings import AnalyzeSettings
from korbert.corpus.counts import count, coverage, form_counts, frequent_cut_forms, usage
from korbert.errors import CorpusError, SettingsError
from korbert.pipelines.artifacts import Chain, Runtime, StageCounts, StageInputs, store
from korbert.pipelines.stages.analyze import USER_WORDS, check_versions, options_of
from korbert.pipelines.stages.stage_settings import VocabStage
from korbert.system import remove, track, write_json
from korbert.tokenization import RECORD, Analyzer, AnalyzerOptions, Tokenizer, extend_tokenizer, learn, other_options


def _learn_tokenizer(
    settings: VocabStage, analyzer: Analyzer, words: tuple[str, ...], counts: Path, morphemes: Path
) -> Tokenizer:
    """Learns a tokenizer from the counts of these morphemes. words: words that stay whole."""
    try:
        settings = VocabStage.model_validate(settings.model_dump() | {"words": words})
    except ValidationError as error:
        raise SettingsError(
            "vocab, with the words of analyze.user_words: {errors}", errors=error.errors()[0]["msg"]
        ) from error
    with track("vocab: learn", total=None, unit="pieces"):
        try:
            model = learn(form_counts(counts, settings, settings.min_documents), settings)
        except CorpusError as error:
            raise CorpusError("{morphemes}: {error}", morphemes=morphemes, error=error) from error
    return Tokenizer(model, settings, analyzer.options, analyzer.versions)


def _base(inputs: StageInputs, options: AnalyzerOptions) -> Tokenizer:
    """Loads the tokenizer named in the recipe. options: of analyze.

    Raises SettingsError if the tokenizer was made with other options of Kiwi, or another Kiwi.
    """
    folder = inputs.folder("tokenizer", RECORD)
    base = Tokenizer.load(folder)
    if difference := other_options(base.analyzer_options, options):
        raise SettingsError(
            "{folder}: was made with other options of Kiwi than analyze.options, so its pieces would not "
            "match these morphemes: {difference}: change it in the recipe",
            folder=folder,
            difference=difference,
        )
    if base.versions != (installed := Analyzer(options).versions):
        raise SettingsError(
            "{folder}: was made with {versions}, and {installed} is installed, so its pieces would not "
            "match these morphemes: install those versions, or learn a tokenizer",
            folder=folder,
            versions=base.versions,
            installed=installed,
        )
    return base


def inspect(chain: Chain) -> None:
    """Raises ModelError or SettingsError if the tokenizer named in the recipe cannot be used."""
    if not chain.recipe.folders("vocab"):
        return
    options = options_of(chain.recipe.section("analyze"), chain.sources.files("analyze"))
    _base(chain.inputs(chain.recipe.stages["vocab"]), options)


def run(settings: VocabStage, inputs: StageInputs, output: Path, runtime: Runtime) -> StageCounts:
    """Writes counts.parquet, tokenizer/ and coverage.json."""
    analyzed = inputs.artifacts["analyze"]
    morphemes = analyzed / "morphemes"
    seed = settings.seed
    share = settings.heldout_share
    # The analyzer that made the morphemes, for the tokenizer to use on other text.
    record = store.read_json(analyzed / store.RECORD) or {}
    analysis = AnalyzeSettings.model_validate(record["settings"])
    options = options_of(analysis, {"user_words": (analyzed / USER_WORDS,)})
    analyzer = Analyzer(options)
    check_versions(analyzed, analyzer.versions, "is installed")

    base = _base(inputs, options) if settings.tokenizer else None
    counted = count(morphemes, output, seed=seed, heldout_share=share, workers=runtime.units)
    counts = output / "counts.parquet"
    # Words that stay whole: those of the recipe and those of the user dictionary.
    words = tuple(dict.fromkeys([*settings.words, *(word.form for word in options.user_words)]))
    if base is None:
        tokenizer = _learn_tokenizer(settings, analyzer, words, counts, morphemes)
    else:
        tokenizer = extend_tokenizer(base, words, options)
        if settings.add:
            frequent = frequent_cut_forms(
                counts, tokenizer, settings.add, min_count=settings.min_count, min_documents=settings.min_documents
            )
            tokenizer = extend_tokenizer(base, (*words, *frequent), options)
    # Sentences with their pieces, by which the tokenizer notices that another Kiwi is installed.
    if tokenizer.parts.probe is None:
        tokenizer.record_probe_encodings()
    remove(output / "tokenizer", Path.is_dir)  # holds only what an interrupted run of this stage left
    tokenizer.save(output / "tokenizer")
    covered = coverage(morphemes, tokenizer, output, seed=seed, heldout_share=share, workers=runtime.units)
    if not covered["all"]["documents"]:
        raise CorpusError(
            "{morphemes}: none of its {counted:,} documents is held out by heldout_share {share}, so "
            "coverage cannot be measured: raise it, or add more text",
            morphemes=morphemes,
            counted=counted["documents"],
            share=share,
        )
    covered["used"] = usage(counts, tokenizer)
    write_json(output / "coverage.json", covered)
    added = {} if base is None else {"added": tokenizer.vocab_size - base.vocab_size}
    return {"size": tokenizer.vocab_size, **added, **counted}
