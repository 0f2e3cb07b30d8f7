"""A search index of texts: by vectors, by words, or by both."""

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Self, Unpack, get_args

import numpy as np
from numpy.typing import NDArray

from korbert.errors import ArtifactError, CorpusError, SettingsError
from korbert.folders import bundled
from korbert.model import TEXTS_AT_ONCE, Model
from korbert.processor import cores
from korbert.tasks.passages import MANY_TEXTS
from korbert.texts import as_texts
from korbert.tokenization import Encoding
from korbert.vectors import storage
from korbert.vectors.correction import Correction
from korbert.vectors.counts import NoCounts, PieceCounts
from korbert.vectors.names import Way
from korbert.vectors.pooling import POOLINGS
from korbert.vectors.ranking import Found, Hit, joined
from korbert.vectors.settings import Asked, VectorSettings
from korbert.vectors.snapshot import Snapshot, opened
from korbert.vectors.storage import Record, WordsRecord
from korbert.vectors.words import has_bm25s, read_texts

__all__ = ["Added", "Index", "is_utf8", "search_settings"]

_DEPTH = 100  # at least this many ranks of each ranking are fused
_CORRECTION, _COUNTS = "correction.npz", "piece_counts.parquet"


@dataclass
class Added:
    """Result of `add`: number of new, replaced (same id) and unchanged texts."""

    new: int = 0
    replaced: int = 0
    unchanged: int = 0


class Index:
    """Texts with ids, their vectors and their words.

        >>> index = Index.create("questions.index", korbert.load("artifacts/demo/pretrain"))
        >>> index.add([("1", "대출을 신청하고 싶어요"), ("2", "카드를 잃어버렸어요")])
        >>> index.search(["대출 신청"], top=1)[0][0].text
        "대출을 신청하고 싶어요"

    Any number of processes may search while one adds or removes; a search sees the texts as they were when it began.
    """

    def __init__(self, folder: Path, model: Model) -> None:
        """Use create or load."""
        self.folder = folder
        self.model = model
        self._now = opened(folder)
        record = self._now.record
        self.settings = VectorSettings.of(record.settings)
        for name, file in record.files.items():
            storage.check_file(folder / name, file)
        self.correction = Correction.load(folder / _CORRECTION) if _CORRECTION in record.files else None
        self._counts = PieceCounts.load(folder / _COUNTS, model.tokenizer) if _COUNTS in record.files else None

    @classmethod
    def create(
        cls,
        folder: str | Path,
        model: Model,
        *,
        counts: PieceCounts | None = None,
        correction: Correction | None = None,
        **asked: Unpack[Asked],
    ) -> Self:
        """Creates an empty index, or opens the one in the folder if model and settings match.

        counts, correction, asked: of a new index, as in Model.embed, but with the pooling of search_settings;
        vectors always have length 1. ArtifactError if the folder holds another index or other files.
        """
        folder, settings = Path(folder), model.vector_settings(**asked)
        if (folder / storage.RECORD).exists():
            record = storage.read_record(folder)
            _check_model(folder, record, model)
            there = VectorSettings.of(record.settings)
            for name in asked:
                if (here := getattr(settings, name)) != getattr(there, name):
                    raise ArtifactError(
                        f"{folder}: {name}: {here!r} here, {getattr(there, name)!r} in the index: leave the option out,"
                        " or name another folder"
                    )
            return cls(folder, model)
        storage.check_place(folder)
        completed, counts = search_settings(model, asked, counts)
        settings = model.vector_settings(**completed).model_copy(update={"normalize": True})
        folder.mkdir(parents=True, exist_ok=True)
        files = {}
        for name, kept in ((_CORRECTION, correction), (_COUNTS, counts)):
            if kept is not None:
                kept.save(folder / name if isinstance(kept, Correction) else folder)
                files[name] = storage.file_record(folder / name)
        in_the_box = not Path(model.name).exists() and bundled(model.name) is not None
        record = Record(
            model={"digest": model.digest, "folder": model.name if in_the_box else str(Path(model.name).absolute())},
            settings=settings.model_dump(mode="json"),
            size=model.pooled([], settings, counts=counts, correction=correction).shape[1],
            files=files,
        )
        storage.write_record(folder, record)
        return cls(folder, model)

    @classmethod
    def load(cls, folder: str | Path, model: Model | str | Path | None = None) -> Self:
        """Opens the index in a folder.

        model: its model, or the model's folder; None: the folder recorded in the index. ArtifactError if there is no
        index, it is damaged, or the model is another one.
        """
        record = storage.read_record(Path(folder))
        if not isinstance(model, Model):
            model = Model.load(record.model["folder"] if model is None else model)
        _check_model(Path(folder), record, model)
        return cls(Path(folder), model)

    def __len__(self) -> int:
        return len(self._snapshot())

    def __iter__(self) -> Iterator[tuple[str, str]]:
        """Id and text of each entry, in the order of adding."""
        for part in self._snapshot().parts:
            live = part.table.take(part.live)
            yield from zip(live["id"].to_pylist(), live["text"].to_pylist(), strict=True)

    def add(self, texts: Iterable[tuple[str, str]], *, rank_words: bool = True) -> Added:
        """Adds (id, text) pairs, 4,096 at a time; pairs added before an error stay.

        A text replaces the one with the same id, unless both are equal. rank_words: rebuild the BM25 ranker at the end;
        otherwise each search does. CorpusError for an id that is given twice, and for a text that is not UTF-8.
        """
        added, given, left = Added(), set[str](), iter(texts)
        with self._writing():
            there = self._now.places()
            while part := list(islice(left, TEXTS_AT_ONCE)):
                for id, text in part:
                    if not isinstance(id, str) or not isinstance(text, str):
                        raise CorpusError(f"id {id!r:.60}: id and text have to be strings, not {text!r:.60}")
                    if id in given:
                        raise CorpusError(f"id {id!r:.60}: is given twice: ids must be unique")
                    if not is_utf8(id + text):
                        raise CorpusError(f"id {id!r:.60}: has a lone surrogate, which no file can hold: remove it")
                    given.add(id)
                self._add(part, there, added)
                if self._merge():  # in between, too, so that there are never many parts of one size
                    there = self._now.places()
                    storage.delete_strays(self.folder, self._now.record)
            self._tidy(rank_words)
        return added

    def remove(self, ids: Iterable[str], *, rank_words: bool = True) -> int:
        """Removes the texts with these ids, and returns their number. Unknown ids are ignored."""
        with self._writing():
            there = self._now.places()
            gone = [there[id] for id in dict.fromkeys(ids) if id in there]
            if gone:
                self._commit(_without(self._now.record, gone))
            self._tidy(rank_words)
        return len(gone)

    @contextmanager
    def _writing(self) -> Iterator[None]:
        with storage.locked(self.folder):
            self._now = opened(self.folder, self._now.parts)
            storage.delete_strays(self.folder, self._now.record)
            yield

    def _add(self, texts: list[tuple[str, str]], there: dict[str, tuple[int, int]], added: Added) -> None:
        """Adds some texts as a part. there: id -> part and row of all texts, which is updated."""
        new: list[tuple[str, str]] = []
        gone = []
        for id, text in texts:
            place = there.get(id)
            if place is None:
                added.new += 1
            elif self._now.parts[place[0]].table["text"][place[1]].as_py() == text:
                added.unchanged += 1
                continue
            else:
                added.replaced += 1
                gone.append(place)
            new.append((id, text))
        if not new:
            return
        workers = cores() if len(new) > MANY_TEXTS else 0
        read = list(read_texts(self.model.tokenizer, [text for _, text in new], self.model.max_length, workers))
        vectors = self._vectors([encoding for encoding, _ in read])
        table = storage.table_of((id, text, terms) for (id, text), (_, terms) in zip(new, read, strict=True))
        record = _without(self._now.record, gone)
        part = storage.write_part(self.folder, f"part-{record.number:05}", table, vectors)
        there.update({id: (len(record.parts), row) for row, (id, _) in enumerate(new)})
        self._commit(record.model_copy(update={"parts": [*record.parts, part], "number": record.number + 1}))

    def _tidy(self, rank_words: bool) -> None:
        """Merges parts, builds graphs of large ones, and the BM25 ranker of all texts."""
        self._merge()
        record = self._now.record
        parts = storage.write_graphs(self.folder, record.parts)
        if parts != record.parts:
            self._commit(record.model_copy(update={"parts": parts}))
        record = self._now.record
        if rank_words and record.words is None and has_bm25s():
            words = storage.write_words(self.folder, f"words-{record.number:05}", self._now.words)
            self._commit(record.model_copy(update={"number": record.number + 1}), words)
        storage.delete_strays(self.folder, self._now.record)

    def _merge(self) -> bool:
        """Merges many small parts, and rewrites those with many removed rows. Returns whether there were any."""
        merged = False
        while (run := storage.due(self._now.record.parts)) is not None:
            record, (table, vectors) = self._now.record, self._now.rows(run)
            whole = [storage.write_part(self.folder, f"part-{record.number:05}", table, vectors)] if len(table) else []
            parts = [*record.parts[: run.start], *whole, *record.parts[run.stop :]]
            self._commit(record.model_copy(update={"parts": parts, "number": record.number + 1}))
            merged = True
        return merged

    def _commit(self, record: Record, words: WordsRecord | None = None) -> None:
        """Replaces the record. words: the ranker of these texts; that of the old record is outdated."""
        storage.write_record(self.folder, record.model_copy(update={"words": words}))
        self._now = opened(self.folder, self._now.parts)

    def search(self, texts: str | Iterable[str], top: int = 10, way: Way = "both") -> list[list[Hit]]:
        """For each text, the `top` most similar texts of the index, best first.

        way: by cosine of vectors, by BM25 of words, or by both, with reciprocal rank fusion. SettingsError for anything
        but strings, for an unknown way, and for words without bm25s.
        """
        given, _ = as_texts(texts, "texts")
        if way not in get_args(Way) or top < 1:
            raise SettingsError(f"way {way!r}, top {top}: use one of {', '.join(get_args(Way))}, and at least 1")
        now = self._snapshot()
        read = list(read_texts(self.model.tokenizer, given, self.model.max_length))
        depth = max(_DEPTH, top) if way == "both" else top
        none: list[list[Found]] = [[] for _ in given]
        vectors = none if way == "words" else now.nearest(self._vectors([encoding for encoding, _ in read]), depth)
        words = none if way == "vectors" else now.words.search([terms for _, terms in read], depth)
        found = []
        for one, other in zip(vectors, words, strict=True):
            order = joined(one, other) if way == "both" else one or other
            by_vectors, by_words = (
                {row: (rank, score) for rank, (row, score) in enumerate(own, 1)} for own in (one, other)
            )
            hits = []
            for row, score in order[:top]:
                (rank, cosine), (place, bm25) = by_vectors.get(row, (None, None)), by_words.get(row, (None, None))
                hits.append(Hit(*now.text(row), score, rank, place, cosine, bm25))
            found.append(hits)
        return found

    def _vectors(self, encodings: list[Encoding]) -> NDArray[np.float32]:
        return self.model.pooled(encodings, self.settings, counts=self._counts, correction=self.correction)

    def _snapshot(self) -> Snapshot:
        """The current index, which another process may have changed."""
        now = self._now
        if storage.read_record(self.folder) != now.record:
            self._now = now = opened(self.folder, now.parts)
        return now


def search_settings(model: Model, asked: Asked, counts: PieceCounts | None = None) -> tuple[Asked, PieceCounts | None]:
    """Settings of a new index, and the counts that its pooling needs.

    The default pooling, for models trained without one, is "bm25" if there are piece counts, else "mean". With 4
    layers of 256, "bm25" reaches a Spearman correlation of 0.57 ("mean": 0.39) on KorSTS test and 0.35 (0.01) on
    KLUE-STS dev, and finds 13.7 % (5.2 %) of KorQuAD's paragraphs at rank 1.
    """
    completed: Asked = {**model.vector_defaults, **asked}
    if "pooling" not in completed:
        try:
            counts = counts or PieceCounts.find(None, model.name, model.tokenizer)
            completed["pooling"] = "bm25"
        except NoCounts:
            completed["pooling"] = "mean"
    if not POOLINGS[completed["pooling"]].counts:
        return completed, None
    return completed, counts or PieceCounts.find(None, model.name, model.tokenizer)


def is_utf8(text: str) -> bool:
    """Whether a text can be encoded: lone surrogates cannot."""
    return text.isascii() or not any("\ud800" <= char <= "\udfff" for char in text)


def _without(record: Record, gone: list[tuple[int, int]]) -> Record:
    """The record without the rows at (part, row)."""
    parts = list(record.parts)
    for number in {number for number, _ in gone}:
        removed = {*parts[number].removed, *(row for own, row in gone if own == number)}
        parts[number] = parts[number].model_copy(update={"removed": sorted(removed)})
    return record.model_copy(update={"parts": parts})


def _check_model(folder: Path, record: Record, model: Model) -> None:
    if model.digest != record.model["digest"]:
        raise ArtifactError(
            f"{folder}: is an index of another model: {record.model['digest'][:12]} ({record.model['folder']}), but"
            f" {model.name} is {model.digest[:12]}: give the model that it was made with, or make the index again"
        )
