"""The source files of a recipe: finds, names and hashes them, again only when size or modification time change."""

from collections.abc import Iterable
from pathlib import Path

from korbert.corpus.documents import SAMPLE_FOLDER
from korbert.corpus.readers import find_files, is_address, remote_version
from korbert.errors import ArtifactError, CorpusError, ModelError
from korbert.folders import bundled, is_on_hub
from korbert.messages import argument
from korbert.names import nfc, on_disk
from korbert.pipelines.artifacts import Finder, store
from korbert.pipelines.recipes.loading import Recipe
from korbert.records import File
from korbert.system import JsonObject, sha256_of

SAMPLE = "sample:"


class Sources:
    """The source files of one recipe below one data folder.

    folder: the recipe's artifact folder, where no source may lie. made: the artifacts; their run.json files hold
    (name, size, mtime) -> SHA-256.
    """

    def __init__(self, recipe: Recipe, data: Path, folder: Path, made: Iterable[Path]) -> None:
        self._recipe = recipe
        self._data = data
        self._folder = folder
        self._known: dict[tuple[str, int, int], str] = {}
        for artifact in made:
            try:
                run = store.read_json(artifact / store.RUN) or {}
                self._known |= {(name, size, mtime): digest for name, size, mtime, digest in run.get("sources", [])}
            except (ArtifactError, TypeError, ValueError):  # the files are hashed again
                continue

    def files(self, stage: str) -> dict[str, tuple[File, ...]]:
        """Returns role -> its files, sorted by name. Raises CorpusError if a pattern matches nothing."""
        if (section := self._recipe.section(stage)) is None:
            return {}
        entry = self._recipe.stages[stage]
        return {
            **entry.found(section, self._data),
            **{role: self._find(stage, role, pattern) for role, pattern in entry.patterns(section).items()},
            **{role: self._below(stage, role, name, find) for role, (name, find) in entry.folders(section).items()},
        }

    def describe(self, stage: str) -> JsonObject:
        """Returns role -> [{name, size, sha256}]. Names are in NFC and relative to the data folder, which may move.

        A remote file is not read: instead of `sha256` it has a `version`, from the headers of its server.
        """
        described: dict[str, list[JsonObject]] = {}
        bases = ((SAMPLE_FOLDER, SAMPLE), (self._data, ""))
        for role, paths in self.files(stage).items():
            described[role] = []
            for path in paths:
                if not isinstance(path, Path):
                    size, version = remote_version(path)
                    described[role].append({"name": str(path), "size": size, "version": version})
                    continue
                stat = path.stat()
                below = ((base, prefix) for base, prefix in bases if path.is_relative_to(base))
                name = next((prefix + path.relative_to(base).as_posix() for base, prefix in below), path.name)
                # A corpus of gigabytes is hashed once, not in every run: as in make and rsync, size and time tell.
                key = (str(path.absolute()), stat.st_size, stat.st_mtime_ns)
                if key not in self._known:
                    self._known[key] = sha256_of(path)
                described[role].append({"name": nfc(name), "size": stat.st_size, "sha256": self._known[key]})
        return described

    def remembered(self) -> list[tuple[str, int, int, str]]:
        """Entries for run.json: (name, size, mtime in ns, SHA-256) of every file hashed so far."""
        return sorted((*key, digest) for key, digest in self._known.items())

    def _find(self, stage: str, role: str, pattern: str) -> tuple[File, ...]:
        base = SAMPLE_FOLDER if pattern.startswith(SAMPLE) else self._data
        relative = pattern.removeprefix(SAMPLE)
        key = f"{self._recipe.given}: {stage}.{role}"
        try:
            files = find_files(relative, base)
        except CorpusError as error:
            raise CorpusError("{key}: {error}", key=key, error=error) from error
        if not files and is_address(relative):
            raise CorpusError("{key}: no file {relative}: change the path in the recipe", key=key, relative=relative)
        if not files:
            raise CorpusError(
                "{key}: no file {relative} in {base}: name the folder that holds it with {option} "
                "(docs/data.md says where to get each data set), or change the path in the recipe",
                key=key,
                relative=relative,
                base=base,
                option=argument("data"),
            )
        return files

    def _below(self, stage: str, role: str, name: str, find: Finder) -> tuple[File, ...]:
        """Returns the files in the folder of a model or tokenizer. Raises CorpusError if there are none."""
        key = f"{self._recipe.given}: {stage}.{role}"
        try:
            path = Path(name) if is_on_hub(name) else on_disk(self._data / name)
            if not path.exists():
                path = bundled(name) or path
            folder = find(path)
        except ModelError as error:
            raise CorpusError("{key}: {error}", key=key, error=error) from error
        # An artifact that starts from itself has a digest that depends on itself, so it would never be fresh.
        if folder.resolve().is_relative_to(self._folder.resolve()):
            raise CorpusError(
                "{key}: {folder}: is an artifact of this recipe: name another, or rename the recipe",
                key=key,
                folder=folder,
            )
        if not (files := find_files("", folder)):
            raise CorpusError(
                "{key}: no folder {name} in {data}, or nothing in it: name the folder of a model, or an "
                "artifact that holds one, relative to {option}",
                key=key,
                name=name,
                data=self._data,
                option=argument("data"),
            )
        return files
