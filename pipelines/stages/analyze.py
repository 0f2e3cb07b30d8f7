"""analyze: documents -> sentences and morphemes (Kiwi); the only stage that analyses the corpus."""

from collections.abc import Mapping
from pathlib import Path

from korbert.corpus.analyze import analyze
from korbert.corpus.corpus_settings import AnalyzeSettings
from korbert.errors import ArtifactError, SettingsError
from korbert.pipelines.artifacts import Runtime, StageCounts, StageInputs, store
from korbert.tokenization import AnalyzerOptions, read_user_words

USER_WORDS = "user_words.tsv"  # in the artifact, for later stages


def run(settings: AnalyzeSettings, inputs: StageInputs, output: Path, runtime: Runtime) -> StageCounts:
    """Writes morphemes/part-*.parquet, failed/part-*.parquet (if Kiwi failed on any), and a copy of the user words."""
    if settings.user_words:
        settings = settings.model_copy(update={"options": options_of(settings, inputs.files)})
        (output / USER_WORDS).write_bytes(inputs.files["user_words"][0].read_bytes())
    return dict(analyze(settings, inputs.artifacts["clean"] / "documents", output, workers=runtime.units))


def options_of(settings: AnalyzeSettings, files: Mapping[str, tuple[Path, ...]]) -> AnalyzerOptions:
    """Returns the options of Kiwi with the words of the user dictionary. files: source files of the stage, by role."""
    if not settings.user_words:
        return settings.options
    if settings.options.user_words:
        raise SettingsError("analyze.user_words and analyze.options.user_words: give only one of them")
    return settings.options.model_copy(update={"user_words": read_user_words(files["user_words"][0])})


def check_versions(analyzed: Path, versions: Mapping[str, str], whose: str) -> None:
    """Raises ArtifactError if the morphemes were made by another version of Kiwi than `versions`.

    analyzed: artifact of the morphemes. whose: says what `versions` are, as in "is installed".
    """
    recorded = (store.read_json(analyzed / store.RECORD) or {})["versions"]
    made = {name: str(recorded.get(name, "absent")) for name in versions}
    if differing := [name for name in versions if made[name] != versions[name]]:
        before, here = (", ".join(f"{name} {side[name]}" for name in differing) for side in (made, versions))
        raise ArtifactError(
            "{analyzed}: its morphemes are from {before}, but {here} {whose}, which splits text "
            "differently: install {others}, or analyze again with `korbert run RECIPE --from analyze "
            "--rebuild`",
            analyzed=analyzed,
            before=before,
            here=here,
            whose=whose,
            others=" ".join(f"{name}=={made[name]}" for name in differing),
        )
