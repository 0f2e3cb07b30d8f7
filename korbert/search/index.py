"""A search index of texts: by words, by vectors, or by both."""

import json
from collections.abc import Callable, Container, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from itertools import islice
from pathlib import Path
from sqlite3 import Connection
from typing import Self, Unpack, get_args

import numpy as np
from numpy.typing import NDArray

from korbert.embedder import TEXTS_AT_ONCE, as_texts
from korbert.errors import ArtifactError, CorpusError, ModelError, SettingsError
from korbert.folders import is_on_hub, lasting
from korbert.messages import Message, argument
from korbert.model import Model
from korbert.search import database as store
from korbert.search.filters import check_where, numbers_where
from korbert.search.hits import (
    CHANCE,
    FOUND_WEIGHT,
    LETTERS_WEIGHT,
    LONG_TERMS,
    USUAL_WEIGHT,
    Hit,
    Ranking,
    letters_found,
    shared_letters,
)
from korbert.search.nearest import VectorCache, select_best
from korbert.search.owners import Owners, read_owners
from korbert.search.texts import (
    Fields,
    all_texts,
    delete,
    insert,
    passage_of,
    read_stored,
    replace_fields,
    rows_of,
    text_of,
)
from korbert.search.words import read_passages, read_texts, word_scores
from korbert.system import cores
from korbert.tasks.kinds.embedding import Embedding
from korbert.tasks.kinds.rerank import Rerank
from korbert.tasks.passages import MANY_TEXTS
from korbert.tasks.retrieval import fuse_scores, weight_among
from korbert.vectors import SearchWay, VectorArgs, VectorSettings

_DEPTH = 100  # at least this many ranks of each ranking are fused
_RERANKED = _REORDERED = 50  # hits that a reranker reads; that shared letters reorder
_CHARS_AT_ONCE = 2**20  # of texts that are added; their passages and encodings take some hundred MB


@dataclass
class Added:
    """Result of `add`: number of new, replaced (same id) and unchanged texts."""

    new: int = 0
    replaced: int = 0
    unchanged: int = 0


class Index:
    """Texts with ids and fields, their words and their vectors.

        >>> index = korbert.Index.create("questions.index", korbert.load("korbert-mini"))
        >>> index.add([("1", "대출을 신청하고 싶어요"), ("2", "카드를 잃어버렸어요", {"kind": "카드"})])
        Added(new=2, replaced=0, unchanged=0)
        >>> index.search(["대출 신청"], top=1)[0][0].text
        '대출을 신청하고 싶어요'

    Any number of processes may search and write at a time: a search sees the texts as they were when it began, and
    writers take turns.
    """

    def __init__(self, folder: Path, model: Model) -> None:
        """Use create or load."""
        self.folder = folder
        self.model = model
        with store.reading(folder) as database:
            self._open(database)

    def _open(self, database: Connection) -> None:
        """Reads what is known about the index, and checks that it is whole and of this model."""
        store.verify(database)
        facts = {key: store.read_meta(database, key) for key in ("model", "settings", "size", "identity")}
        if self.model.digest != facts["model"]["digest"]:
            raise ArtifactError(
                "{folder}: is an index of another model: {index_digest} ({index_folder}), but {model} is {digest}: "
                "give the model that it was made with, or make the index again",
                folder=self.folder,
                index_digest=facts["model"]["digest"][:12],
                index_folder=facts["model"]["folder"],
                model=self.model.name,
                digest=self.model.digest[:12],
            )
        self.settings = VectorSettings.of(facts["settings"])
        self._size: int = facts["size"]
        self._identity: str = facts["identity"]
        self._cache = VectorCache(self._size)
        self._owners: Owners | None = None
        self.way, self.why = default_way(self.model) if self._size else ("words", Message("the index has no vectors"))

    @contextmanager
    def _reading(self) -> Iterator[Connection]:
        """A connection to the index in the folder, which is opened again if another one is there now."""
        with store.reading(self.folder) as database:
            if store.read_meta(database, "identity") != self._identity:
                self._open(database)
            yield database

    @contextmanager
    def _writing(self) -> Iterator[Connection]:
        """A connection as of store.writing. ArtifactError if another index is in the folder now."""
        with store.writing(self.folder) as database:
            if store.read_meta(database, "identity") != self._identity:
                raise ArtifactError("{folder}: another index is there now: open that one", folder=self.folder)
            yield database

    @classmethod
    def create(cls, folder: str | Path, model: Model, *, words_only: bool = False, **asked: Unpack[VectorArgs]) -> Self:
        """Creates an empty index, or opens the one in the folder if model and settings match.

        Args:
            folder: Of the index; it is made if it is absent.
            model: Its tokenizer finds the words, its encoder makes the vectors.
            words_only: A new index stores no vectors, which take most of the time; ignored if the index exists.
            **asked: As in Model.embed, of a new index, but vectors always have length 1.

        Raises:
            ArtifactError: The folder holds an index of another model or other settings, or other files.
        """
        folder = Path(folder)
        asked.pop("normalize", None)
        settings = model.vector_settings(**asked).model_copy(update={"normalize": True})
        if store.is_index(folder):
            return cls(folder, model).matching(**asked)
        folder.mkdir(parents=True, exist_ok=True)
        facts = {
            "model": {"digest": model.digest, "folder": lasting(model.name)},
            "settings": settings.model_dump(mode="json"),
            "size": 0 if words_only else model.pool_encoded([], settings).shape[1],
        }
        store.create(folder, facts)
        return cls(folder, model)

    @classmethod
    def load(cls, folder: str | Path, model: Model | Sequence[Model] | str | Path | None = None) -> Self:
        """Opens the index in a folder.

        model: its model, several with it among them, or the model's folder; None: the folder recorded in the index.
        ArtifactError if there is no index, it is damaged, the model is another one, or the recorded one is on the
        Hugging Face Hub, which is asked only for a model that is given.
        """
        if model is None:
            model = model_of(folder)
        if isinstance(model, str | Path):
            model = Model.load(model)
        if not isinstance(model, Model):
            with store.reading(Path(folder)) as database:
                digest = store.read_meta(database, "model")["digest"]
            # If none has the digest, the first one is taken, which the constructor refuses.
            model = next((candidate for candidate in model if candidate.digest == digest), model[0])
        return cls(Path(folder), model)

    def matching(self, **asked: Unpack[VectorArgs]) -> Self:
        """This index. ArtifactError if it has another value of one of these settings."""
        settings = self.model.vector_settings(**asked)
        for name in asked:
            if (value := getattr(settings, name)) != (index_value := getattr(self.settings, name)):
                raise ArtifactError(
                    "{folder}: {name}: {here!r} here, {there!r} in the index: leave the option out, or name "
                    "another folder",
                    folder=self.folder,
                    name=name,
                    here=value,
                    there=index_value,
                )
        return self

    def __repr__(self) -> str:
        return f"<Index {self.folder}: searched by {self.way}, as {self.why}>"

    def __len__(self) -> int:
        with self._reading() as database:
            return int(store.read_meta(database, "texts"))

    @property
    def num_passages(self) -> int:
        """The number of passages, one of each text that the model reads at once."""
        with self._reading() as database:
            return int(store.read_meta(database, "passages"))

    def __iter__(self) -> Iterator[tuple[str, str]]:
        """Id and text of each entry, in the order of adding."""
        with self._reading() as database:
            for row, _ in all_texts(database):
                yield row.id, row.text

    def add(self, texts: Iterable[str | tuple[str, str] | tuple[str, str, Fields] | Mapping[str, object]]) -> Added:
        """Adds texts, some thousand at a time; what was added before an error stays.

        A text replaces the one with the same id, unless text and fields are equal. One that the model cannot read at
        once is cut into passages at ends of sentences.

        Args:
            texts: Strings, which get the next free numbers as ids; (id, text) or (id, text, fields); dicts, whose keys
                are id, text (or another usual name) and fields; a frame of pandas or polars, or a Dataset.

        Raises:
            SettingsError: The texts are something else.
            CorpusError: An id is given twice, or a text is not UTF-8.
        """
        added = Added()
        ids: set[str] = set()
        pending_rows = rows_of(texts)
        while part := list(_part_of(pending_rows)):
            given_ids = {id for id, *_ in part}
            numbers = iter(self._free_numbers(sum(id is None for id, *_ in part), given_ids))
            rows = [(next(numbers) if id is None else id, text, fields) for id, text, fields in part]
            for id, *_ in rows:
                if id in ids:
                    raise CorpusError("id {id!r:.60}: is given twice: ids must be unique", id=id)
                ids.add(id)
            while rows:
                rows = self._add(rows, added)
        return added

    def _free_numbers(self, count: int, given_ids: Container[str | None]) -> list[str]:
        """The next numbers that are not used as ids, nor given ones, and that no other process gets."""
        numbers: list[str] = []
        if count:
            with self._writing() as database:
                last = store.read_meta(database, "numbered")
                while len(numbers) < count:
                    last += 1
                    if str(last) not in given_ids and not read_stored(database, [str(last)]):
                        numbers.append(str(last))
                store.write_meta(database, numbered=last)
        return numbers

    def remove(self, ids: Iterable[str]) -> int:
        """Removes the texts with these ids, and returns their number. Unknown ids are ignored."""
        with self._writing() as database:
            numbers = [text.number for text in read_stored(database, ids).values()]
            delete(database, numbers)
        return len(numbers)

    def _add(self, texts: list[tuple[str, str, str]], added: Added) -> list[tuple[str, str, str]]:
        """Adds (id, text, fields). Returns those that another process changed meanwhile: they are to be added again."""
        with self._reading() as database:
            stored = read_stored(database, (id for id, _, _ in texts))
        new_texts = {id: text for id, text, _ in texts if id not in stored or stored[id].text != text}
        workers = cores() if len(new_texts) > MANY_TEXTS else 0
        indexed_texts = list(
            read_passages(self.model.tokenizer, list(new_texts.values()), self.model.max_length, workers)
        )
        encodings = [encoding for indexed in indexed_texts for encoding in indexed.encodings]
        vectors = np.zeros((len(encodings), 0), np.float32)
        if self._size:
            settings = self.settings.model_copy(update={"side": "passage"})
            vectors = self.model.pool_encoded(encodings, settings)
        vector_rows = iter(vectors)
        entries = {
            id: (indexed.terms, indexed.passages, list(islice(vector_rows, len(indexed.passages))))
            for id, indexed in zip(new_texts, indexed_texts, strict=True)
        }
        changed_texts = []
        replaced_numbers = []
        rows = []
        with self._writing() as database:
            stored = read_stored(database, (id for id, _, _ in texts))
            for id, text, fields in texts:
                stored_text = stored.get(id)
                if stored_text and (stored_text.text, stored_text.fields) == (text, fields):
                    added.unchanged += 1
                elif stored_text and stored_text.text == text:
                    added.replaced += 1
                    replace_fields(database, stored_text, fields)
                elif id not in entries:
                    changed_texts.append((id, text, fields))
                else:
                    rows.append((id, fields, text, *entries[id]))
                    if stored_text is None:
                        added.new += 1
                    else:
                        added.replaced += 1
                        replaced_numbers.append(stored_text.number)
            delete(database, replaced_numbers)
            insert(database, rows)
            known_fields = set(store.read_meta(database, "fields"))
            all_fields = known_fields.union(*(json.loads(fields) for _, _, fields in texts))
            if all_fields > known_fields:
                store.write_meta(database, fields=sorted(all_fields))
        return changed_texts

    def search(
        self,
        texts: str | Iterable[str],
        top: int = 10,
        way: SearchWay | None = None,
        where: str | None = None,
        reranker: Model | None = None,
    ) -> list[list[Hit]]:
        """For each text, the `top` most similar texts of the index, best first, each with its most similar passage.

        Args:
            texts: A text to search for, or several.
            top: Hits of each.
            way: By BM25 of words, by cosine of vectors, or by both; None: that of default_way.
            where: Only among texts whose fields meet this condition, as in "kind = '민사'"; see filters.py.
            reranker: A model of kind "rerank", which reads each of the first 50 hits' passages together with the text.
                They are sorted by its score plus the weighted search score (see reranked); the others follow unchanged.

        Raises:
            SettingsError: The texts are not strings, or way or condition are not valid.
            ModelError: The reranker is a model of another kind.
        """
        queries = as_texts(texts, "texts")[0]
        if way not in (None, *get_args(SearchWay)) or top < 1:
            raise SettingsError(
                "way {way!r}, top {top}: use one of {ways}, and at least 1",
                way=way,
                top=top,
                ways=", ".join(get_args(SearchWay)),
            )
        encoded_queries = list(read_texts(self.model.tokenizer, queries, self.model.max_length))
        with self._reading() as database:
            way = self._checked_way(way)
            owners = self._owners = read_owners(database, self._owners)
            allowed = None if where is None else owners.passages(numbers_where(database, where))
            vectors = np.zeros((len(encoded_queries), 0), np.float32)
            if way != "words":
                settings = self.settings.model_copy(update={"side": "query"})
                vectors = self.model.pool_encoded([encoding for encoding, _ in encoded_queries], settings)
            depth = max(top, _RERANKED) if reranker else top
            results = [
                self._search(database, way, query, terms, vector, depth, owners, allowed)
                for query, (_, terms), vector in zip(queries, encoded_queries, vectors, strict=True)
            ]
        if reranker:
            results = [hits[:top] for hits in rerank_hits(reranker, queries, results)]
        return results

    def check_search(self, way: SearchWay | None, where: str | None) -> None:
        """SettingsError if a search would refuse this way or this condition, which may still fail on a text."""
        with self._reading() as database:
            self._checked_way(way)
            if where is not None:
                check_where(database, where)

    def _checked_way(self, way: SearchWay | None) -> SearchWay:
        """This way, or the default one. SettingsError if it needs vectors that the index lacks."""
        way = way or self.way
        if way != "words" and not self._size:
            raise SettingsError(
                "way {way!r}: this index has only words: search by words, or make one with vectors", way=way
            )
        return way

    def _search(
        self,
        database: Connection,
        way: SearchWay,
        query: str,
        terms: list[str],
        vector: NDArray[np.float32],
        top: int,
        owners: Owners,
        allowed: NDArray[np.int64] | None,
    ) -> list[Hit]:
        """Finds the best texts for a query, given its terms and vector.

        allowed: numbers of the passages to search; None: all.
        """
        depth = max(_DEPTH, top) if way == "both" else top
        by_words: Ranking = []
        by_vectors: Ranking = []
        if way != "vectors":
            words = word_scores(database, terms, owners)
            numbers = np.flatnonzero(words > 0) if allowed is None else allowed[words[allowed] > 0]
            by_words = select_best(*owners.best(numbers, words[numbers]), depth)
        if way != "words":
            codes = self._cache.read(database)
            query_cosines = codes.query(vector)
            chance = CHANCE * query_cosines.deviation * owners.spread
            searched = codes.numbers if allowed is None else allowed
            by_vectors = query_cosines.best(
                database, owners, searched, depth, lambda cosines: cosines - chance[searched]
            )
        ranking = by_words or by_vectors
        letters_weight = 0.0  # the weight of shared letters
        if way == "both":
            found_texts = owners.texts[np.array([number for number, _ in by_words + by_vectors], np.int64)]
            candidates = owners.passages(np.unique(found_texts))
            weight, letters_weight, letters_score = self._weights(database)
            count = max(top, _REORDERED) if letters_weight else top

            def fused(cosines: NDArray[np.float32]) -> NDArray[np.float32]:
                return fuse_scores(words[candidates], cosines - chance[candidates], weight)

            ranking = query_cosines.best(database, owners, candidates, count, fused, weight)
        hits = _hits(database, ranking, owners, by_vectors, by_words)
        if letters_weight:
            shares = letters_score(query, (hit.passage for hit in hits[:_REORDERED]))
            hits = _resort(hits, [hit.score + letters_weight * share for hit, share in zip(hits, shares, strict=False)])
        return hits[:top]

    def _weights(self, database: Connection) -> tuple[float, float, Callable[[str, Iterable[str]], list[float]]]:
        """Returns the weight of cosines and the weight of shared letters, both added to BM25, and the function that
        scores shared letters. The choice depends on the mean length of the passages."""
        if not isinstance(self.model.kind, Embedding) or not self.model.kind.cosine_weight:
            return USUAL_WEIGHT, 0.0, shared_letters
        terms = store.read_meta(database, "length") / max(store.read_meta(database, "passages"), 1)
        weight = weight_among(terms, self.model.kind.cosine_weight)
        if terms < LONG_TERMS:
            return weight, weight_among(terms, LETTERS_WEIGHT), shared_letters
        return weight, FOUND_WEIGHT, letters_found


def _hits(database: Connection, ranking: Ranking, owners: Owners, by_vectors: Ranking, by_words: Ranking) -> list[Hit]:
    """Returns hits for the passages of a ranking, with the ranks and scores of their texts by vectors and by words."""

    def ranks_and_scores(ranking: Ranking) -> dict[int, tuple[int, float]]:
        """Number of a text -> its rank and score."""
        return {int(owners.texts[number]): (rank, score) for rank, (number, score) in enumerate(ranking, 1)}

    vector_ranks, word_ranks = ranks_and_scores(by_vectors), ranks_and_scores(by_words)
    hits = []
    for number, score in ranking:
        passage = passage_of(database, number)
        row = text_of(database, passage.text_number)
        rank_vectors, score_vectors = vector_ranks.get(passage.text_number, (None, None))
        rank_words, score_words = word_ranks.get(passage.text_number, (None, None))
        hits.append(
            Hit(
                id=row.id,
                text=row.text,
                passage=row.text[passage.begin : passage.end],
                begin=passage.begin,
                end=passage.end,
                score=score,
                rank_vectors=rank_vectors,
                rank_words=rank_words,
                score_vectors=score_vectors,
                score_words=score_words,
                fields=json.loads(row.fields),
            )
        )
    return hits


def _part_of(rows: Iterator[tuple[str | None, str, str]]) -> Iterator[tuple[str | None, str, str]]:
    """The first rows, whose texts are added together."""
    chars = 0
    for row in islice(rows, TEXTS_AT_ONCE):
        yield row
        chars += len(row[1])
        if chars >= _CHARS_AT_ONCE:
            return


def model_of(folder: str | Path) -> str:
    """The model that an index was made with: a folder, or the name of one in the box.

    ArtifactError if there is no index, or for a model on the Hugging Face Hub, which is asked only for a name that a
    user gives.
    """
    with store.reading(Path(folder)) as database:
        name: str = store.read_meta(database, "model")["folder"]
    if is_on_hub(name):
        raise ArtifactError(
            "{folder}: was made with a model on the Hub, which is asked only if you say so: {option} {name}",
            folder=folder,
            name=name,
            option=argument("model"),
        )
    return name


def default_way(model: Model) -> tuple[SearchWay, str]:
    """How a search ranks texts unless it is told, and why: by words, and by vectors, too, where these help.

    The vectors of models that were not trained for search find less than half as many as words do, and both together
    less than words alone: see "Search" in benchmarks/RESULTS.md. For models that were, validation says whether vectors
    help.
    """
    if not isinstance(model.kind, Embedding) or model.kind.learns != "pairs":
        return "words", Message("the model was not trained for search")
    if model.kind.cosine_weight:
        return "both", Message("they found more than words alone on the pairs that the model was validated on")
    return "words", Message("vectors found nothing more on the pairs that the model was validated on")


def rerank_kind(model: Model, name: object = "this model") -> Rerank:
    """The kind of a reranker. ModelError for a model of another kind."""
    if not isinstance(model.kind, Rerank):
        raise ModelError(
            "{name}: was not trained to rerank: train a model on queries, passages and negatives with "
            "`korbert finetune --kind rerank`",
            name=name,
        )
    return model.kind


def rerank_hits(reranker: Model, queries: Sequence[str], results: Sequence[list[Hit]]) -> list[list[Hit]]:
    """The hits of each query, the first 50 reranked: their new score is the reranker's plus `found_weight` times the
    search score as a share of the best hit's.
    """
    kind = rerank_kind(reranker)
    pairs = [(query, hit.passage) for query, hits in zip(queries, results, strict=True) for hit in hits[:_RERANKED]]
    scores = iter(reranker.predict(pairs))
    reranked = []
    for hits in results:
        weight = kind.found_weight / (max((abs(hit.score) for hit in hits), default=0.0) or 1.0)
        reranked.append(_resort(hits, [next(scores) + weight * hit.score for hit in hits[:_RERANKED]]))
    return reranked


def _resort(hits: list[Hit], scores: Sequence[float]) -> list[Hit]:
    """Gives the first hits new scores and sorts them by these; the other hits follow unchanged."""
    scored = [replace(hit, score=score) for hit, score in zip(hits, scores, strict=False)]
    return sorted(scored, key=lambda hit: -hit.score) + hits[len(scored) :]
