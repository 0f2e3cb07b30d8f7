"""Commands on text vectors and search: embed, index, similar, search-eval, negatives."""

import sys
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, nullcontext
from functools import partial
from itertools import chain, islice
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Literal, TypeVar, get_args

import click

import korbert
from korbert import search
from korbert.errors import CorpusError, SettingsError
from korbert.messages import Message, argument
from korbert.names import on_disk
from korbert.pipelines import inference, reports
from korbert.pipelines.commands import options
from korbert.records import Form, Format, is_empty
from korbert.search.database import FILE
from korbert.system import JsonObject, check_output, check_outside, say, track, write_bytes_atomically
from korbert.vectors import SearchWay, Side, Unit

T = TypeVar("T")

_SHOWN = 120  # characters of a found passage
_LONGEST = 1 << 26  # bytes of a document to index
_PATH = options.PathType()
_PLACE = options.PlaceType()
_way = partial(click.option, "--way", type=click.Choice(get_args(SearchWay)))
_rerank = click.option(
    "--rerank", type=_PATH, metavar="MODEL", help="Sort the first 50 texts again by this model of kind rerank."
)


@click.command()
@options.model
@click.argument("input", type=options.CorpusType(), default="-")
@click.option("--output", type=options.Output(), help="Write a .npy or .parquet file, or of several files a folder of "
              "Parquet parts; an interrupted run resumes.")  # fmt: skip
@options.corpus
@options.vectors
@click.option("--raw", is_flag=True, help="Leave vectors as they are pooled, not scaled to unit length.")
@click.option(
    "--side", type=click.Choice(get_args(Side)), help="Role of the texts in a search; its prompt is put before them."
)
@click.option(
    "--parts", type=click.Choice(get_args(Unit)), help="Vectors of these units of each text, with their spans."
)
@options.records
@options.on_models
def embed(
    model: Path, input: options.Input, output: Path | None, text: str | None, form: Format, device: str,
    parts: Unit | None, workers: int | None, runner: Literal["native", "ray"], address: str | None, **given: Any,
) -> None:  # fmt: skip
    """Compute the vectors of the texts of INPUT, each of unit length.

    INPUT is standard input by default; results keep its order. MODEL is any model. A text is a line, JSON of {"text":
    ..}, or a row of a table (.csv, .tsv, .parquet). Without --output, each text yields a JSON line of {"line": ..,
    "vector": ..}. A .npy file has one row per record; a .parquet file has line, id, error and vector. A record that
    cannot be read is reported, its row is NaN or null, and the exit code is 1.

    INPUT may also be a folder or a glob, in quotes: then --output is a folder, --workers processes each load MODEL, and
    a row has the columns of its record, its file and line, and the vector.

    \b
    Example:
      korbert embed korbert-mini-embed 'corpus/*.jsonl.gz' --output vectors --workers 8
    """
    files = inference.embedding
    spread: JsonObject = {"workers": workers, "runner": runner, "address": address}
    if not input.corpus:
        options.refuse_workers(input, spread)
    if not input.corpus and output is not None:
        files.check_ending(output)
        check_output(output, model, input.file)
    if parts:
        text_options = given | {"output": output, "precision": given["precision"] not in ("auto", "fp32")}
        for name in ("output", "pooling", "no_special_tokens", "size", "raw", "side", "precision"):
            if text_options[name]:
                raise SettingsError(
                    "{option}: is for vectors of texts: leave it out, or leave {parts} out",
                    option=argument(name),
                    parts=argument("parts"),
                )
    if input.corpus:
        make = partial(inference.parts.RecordEmbedder.of, column=text, asked=options.asked_for(given))
        options.write_corpus(model, make, input, output, form, device=device, precision=given["precision"], **spread)
        return
    embedding = files.TextEmbedder(
        options.load_for_batches(model, device, given["precision"]), options.asked_for(given)
    )
    failed = options.Failed(input.name)
    records = files.text_records(input.file, input.name, form, text)
    if output is not None:
        with track("embed", None, "texts") as advance:
            rows, resumed = files.write_vectors(embedding, chain.from_iterable(records), output, failed, advance)
        written = Message("{output}: {rows:,} rows", output=output, rows=rows)
        if resumed:
            written = Message("{written}, {count:,} of them from an earlier run", written=written, count=resumed)
        say(written, err=True)
        failed.end()
        return
    with nullcontext(lambda count: None) if sys.stdout.isatty() else track("embed", None, "texts") as advance:
        for batch in filter(None, records):
            readable = [record for record in batch if not failed(record)]
            _add_vectors(readable, embedding, parts)
            click.echo(b"\n".join(map(inference.lines.as_json, batch)))
            advance(len(batch))
    failed.end()


def _add_vectors(records: list[JsonObject], embedding: "inference.embedding.TextEmbedder", parts: Unit | None) -> None:
    """Adds to each record the vector of its text, or the vectors of the parts of its text."""
    texts = [record["text"] for record in records]
    if parts is None:
        for record, vector in zip(records, embedding(texts), strict=True):
            record["vector"] = vector.tolist()
        return
    for record, text_parts in zip(records, embedding.model.parts(texts, parts, **embedding.asked), strict=True):
        columns = zip(text_parts.names, text_parts.spans, text_parts.vectors.tolist(), strict=True)
        record["parts"] = [{"name": name, "span": span, "vector": vector} for name, span, vector in columns]


def _pairs(
    corpus: Path, form: Format, text: str | None, failed: options.Failed
) -> Iterator[tuple[str, str, JsonObject]]:
    """Yields id, text and fields of each record of a file or folder; reports errors and repeated ids.

    In a folder, an id begins with the name of its file.
    """
    lines_by_id: dict[str, int] = {}
    blank = 0
    files = options.files_of(corpus)
    for name, file in (files or {corpus.name: corpus}).items():
        line = number = 0  # the number of a record on its line: a list of JSON may be one line
        for record in _records_of(file, name, form, text, is_alone=file is corpus):
            number = number + 1 if record["line"] == line else 1
            line = record["line"]
            id = f"{name}:{line}" if number == 1 else f"{name}:{line}.{number}"
            if "id" in record:
                id = str(record["id"]) if file is corpus else f"{name}:{record['id']}"
            if "error" not in record and id in lines_by_id:
                record["error"] = f"id {id!r:.60} is already used by line {lines_by_id[id]}"
            if "error" in record and file is not corpus:
                record["error"] = f"of {name}: {record['error']}"
            if failed(record):
                continue
            if is_empty(record["text"]):
                blank += 1
                continue
            lines_by_id[id] = record["line"]
            yield id, record["text"], record["fields"]
    if blank:
        say(Message("korbert: {corpus}: blank texts left out: {count:,}", corpus=corpus, count=blank), err=True)


def _records_of(file: Path, name: str, form: Format, text: str | None, *, is_alone: bool) -> Iterator[JsonObject]:
    """Yields the records of a file. is_alone: raise if the file cannot be read; else yield a record with the error."""
    try:
        yield from chain.from_iterable(
            inference.embedding.text_records(file, name, form, text, fields=True, longest=_LONGEST)
        )
    except (CorpusError, SettingsError) as error:
        if is_alone:
            raise
        yield {"line": 1, "error": str(error).removeprefix(f"{name}: ")}


def _advancing(items: Iterable[T], advance: Callable[[int], None]) -> Iterator[T]:
    for item in items:
        yield item
        advance(1)


@click.command()
@click.argument("model", type=_PATH, metavar="MODEL|INDEX", shell_complete=options.model_names)
@click.argument("corpus", type=_PLACE, required=False)
@click.option("--output", type=options.Output(), help="Index folder; an existing index is extended.")
@click.option("--check", is_flag=True, help="Instead, read all of INDEX and say whether it is as it was written.")
@click.option("--remove", type=_PATH, help="File of ids, one per line, to remove first.")
@options.vectors
@options.records
@options.on_models
def index(
    model: Path, corpus: Path | None, output: Path | None, check: bool, remove: Path | None, text: str | None,
    form: Format, device: str, **given: Any,
) -> None:  # fmt: skip
    """Index the texts of CORPUS for search by BM25 and vectors.

    CORPUS is a file of lines, JSON of {"id": .., "text": ..}, a table (.csv, .tsv, .parquet), an address, or a folder,
    whose .txt and .md files are read by line, and its tables and JSON files, too. Its other columns are kept: see
    `similar --where`. A text with an indexed id replaces the earlier one; the default id is FILE:LINE (FILE:LINE.2 for
    a second one in JSON). An interrupted run resumes without recomputing what it has added.
    """
    if check:
        if corpus or output or remove:
            raise SettingsError("--check reads an index, and nothing else: korbert index INDEX --check")
        say(Message("{index}: {count:,} texts, all as they were written", index=model, count=search.check(model)))
        return
    if output is None and corpus is None and remove and (model / FILE).is_file():
        output = model
        model = Path(search.model_of(output))
    if output is None:
        raise SettingsError("no index is named: give its folder with --output FOLDER")
    _check_files(corpus, remove)
    check_outside(output, model)
    exists = search.is_index(output)  # before the model is loaded: refuses other files
    failed = options.Failed(str(corpus))
    texts = iter(()) if corpus is None else _pairs(corpus, form, text, failed)
    # One text is read ahead, as no index is made from an empty corpus.
    first_texts = list(islice(texts, 1))
    if corpus is not None and not first_texts and not exists:
        failed.end()
        raise CorpusError("{corpus}: holds no text: give texts to index", corpus=corpus)
    loaded = options.load_for_batches(model, device, given["precision"])
    text_index = search.Index.create(output, loaded, **options.asked_for(given))  # or opens it
    removed = 0
    added = search.Added()
    if remove is not None:
        ids = {id for _, id in inference.lines.texts(remove, remove.name) if id}
        removed = text_index.remove(ids)
        if removed < len(ids):
            say(
                Message(
                    "korbert: {file}: {count:,} of {ids:,} ids are not in the index",
                    file=remove, count=len(ids) - removed, ids=len(ids),
                ),
                err=True,
            )  # fmt: skip
    if corpus is not None:
        with track("index", None, "texts") as advance:
            added = text_index.add(_advancing(chain(first_texts, texts), advance))
        if remaining := len(text_index) - added.new - added.replaced - added.unchanged:
            say(
                Message(
                    "{index}: {count:,} texts are not in {corpus}, and stay: --remove takes a file of their ids",
                    index=output, count=remaining, corpus=corpus,
                ),
                err=True,
            )  # fmt: skip
    count = len(text_index)
    passages = text_index.num_passages
    texts_now = Message("{count:,} texts", count=count)
    if passages > count:
        texts_now = Message("{count:,} texts in {passages:,} passages", count=count, passages=passages)
    say(
        Message(
            "{output}: {new:,} new, {replaced:,} replaced, {unchanged:,} unchanged, {removed:,} removed; {texts}",
            output=output, new=added.new, replaced=added.replaced, unchanged=added.unchanged, removed=removed,
            texts=texts_now,
        )
    )  # fmt: skip
    failed.end()


def _check_files(corpus: Path | None, remove: Path | None) -> None:
    """Raises SettingsError if neither is given, or one cannot be read: before a model is loaded, which takes time."""
    if corpus is None and remove is None:
        raise SettingsError("neither CORPUS nor --remove is given: name texts to add, or ids to remove")
    for path in filter(None, (corpus, remove)):
        if not (path.is_file() or (path == corpus and inference.embedding.holds_texts(path))):
            what = Message("is a folder without texts and tables") if path.is_dir() else Message("no such file")
            raise SettingsError(
                "{path}: {what}: name a file or folder of texts, or a file of ids for --remove", path=path, what=what
            )


@contextmanager
def _index_of(
    model: Path,
    corpus: Path,
    device: str,
    given: JsonObject,
    way: SearchWay | None,
    pairs: Iterable[tuple[str, str, JsonObject]],
) -> "Iterator[search.Index]":  # fmt: skip
    """The index in a folder, or a temporary one of the pairs, without vectors if the way of searching is by words."""
    loaded = options.load_for_batches(model, device, given["precision"])
    settings = options.asked_for(given)
    if (corpus / FILE).is_file() or (corpus.is_dir() and not inference.embedding.holds_texts(corpus)):
        yield search.Index.load(corpus, loaded).matching(**settings)
        return
    way = way or search.default_way(loaded)[0]
    with TemporaryDirectory(prefix="korbert-index-") as folder:
        text_index = search.Index.create(folder, loaded, words_only=way == "words", **settings)
        text_index.add(pairs)
        yield text_index


@click.command()
@click.argument(
    "places", nargs=-1, required=True, metavar="[MODEL] CORPUS|INDEX [TEXT]...", shell_complete=options.model_names
)
@options.texts_input
@click.option(
    "--model", type=_PATH, shell_complete=options.model_names,
    help="Model, if it is not the first argument.  [default: the one that INDEX was made with]",
)  # fmt: skip
@click.option("--top", type=click.IntRange(min=1), default=10, help="Number of texts to find.")
@_way(help="Rank by BM25 of words, by vectors, or by both.  [default: words; both if that helped MODEL in validation]")
@click.option("--where", metavar="CONDITION", help="Only texts whose columns meet it, as in \"kind = '민사'\".")
@_rerank
@options.as_json
@options.vectors
@options.records
@options.on_models
def similar(
    places: tuple[str, ...], input: options.Input | None, model: Path | None, top: int, way: SearchWay | None,
    where: str | None, rerank: Path | None, as_json: bool, text: str | None, form: Format, device: str, **given: Any,
) -> None:  # fmt: skip
    """Find the texts of CORPUS or INDEX most similar to TEXT.

    INDEX is a folder made by `korbert index`, which names its model; a CORPUS, as there, needs a MODEL, and is indexed
    for this call only. Texts are arguments, or lines of --input or standard input. Each output line shows rank, score,
    cosine similarity, BM25, id and beginning of the text; - if a ranking did not return it. Of a text longer than the
    model reads, it is a passage, with ID:BEGIN-END in characters. --json has the whole passage, and all columns.
    """
    arguments = list(places)
    first = on_disk(Path(arguments[0]))
    if model is None and (first / FILE).is_file():
        model = Path(search.model_of(first))
    elif model is None:
        model = _PATH.convert(arguments.pop(0), None, None)
    if not arguments:
        raise SettingsError(
            "{model}: nothing to search in is named: give a model and a file of texts, or an index", model=model
        )
    corpus = _PLACE.convert(arguments[0], None, None)
    texts = tuple(arguments[1:])
    queries = options.texts_of(texts, input)
    failed = options.Failed(str(corpus))
    reranker = _reranker(rerank, device)
    with _index_of(model, corpus, device, given, way, _pairs(corpus, form, text, failed)) as text_index:
        if way is None and text_index.way == "words":
            say(
                Message(
                    "korbert: ranked by {way}, as {why}: --way chooses another", way=text_index.way, why=text_index.why
                ),
                err=True,
            )
        for place, query in queries:
            if not query.strip():
                if texts:
                    raise SettingsError("{place} is blank: give words to search for", place=place)
                say(Message("korbert: {place} is blank: nothing to search for", place=place), err=True)
                continue
            hits = text_index.search(query, top, way, where, reranker)[0]
            if as_json:
                click.echo(inference.lines.as_json({"text": query, "hits": [hit.as_json() for hit in hits]}))
                continue
            if len(texts) != 1:
                say(query)
            head = "      score  cosine    BM25  id  text" if hits else Message("  no text was found")
            say(head)
            for rank, hit in enumerate(hits, 1):
                cosine = "     -" if hit.score_vectors is None else f"{hit.score_vectors:6.3f}"
                bm25 = "     -" if hit.score_words is None else f"{hit.score_words:6.2f}"
                line = " ".join(hit.passage.split())
                place = hit.id if hit.is_whole else f"{hit.id}:{hit.begin}-{hit.end}"
                line = line if len(line) <= _SHOWN else f"{line[:_SHOWN]} .."
                say(f"{rank:3}  {hit.score:.4f}  {cosine}  {bm25}  {place}  {line}")
    failed.end()


@click.command()
@options.model
@click.argument("queries", type=_PATH)
@click.argument("corpus", type=_PLACE, metavar="CORPUS|INDEX")
@click.option("--query", metavar="NAME", help="Column or key of the query.  [default: query, question, 질의, ..]")
@click.option("--relevant", metavar="NAME", default="relevant",
              help="Column or key of the id, or list of ids, of the texts that answer it.")  # fmt: skip
@_way(help="Only this way of searching.  [default: each]")
@_rerank
@click.option("--html", "--page", "page", type=options.Output(),
              help="Write an HTML page: the figures, and queries on which ways differ.")  # fmt: skip
@options.as_json
@options.vectors
@options.records
@options.on_models
def search_eval(
    model: Path, queries: Path, corpus: Path, query: str | None, relevant: str, way: SearchWay | None,
    rerank: Path | None, page: Path | None, as_json: bool, text: str | None, form: Format, device: str, **given: Any,
) -> None:  # fmt: skip
    """Measure how well words, vectors, both, and --rerank find the texts that answer QUERIES.

    QUERIES is a file of {"query": .., "relevant": ID or [ID, ..]} or a table with these columns; CORPUS and INDEX are
    as in `korbert similar`. Prints the share of the relevant texts among the first 1, 10 and 100, MRR and nDCG@10,
    times 100, each with its 95 % interval over the queries.
    """
    if page:
        check_output(page, model, queries, corpus, may_overwrite=reports.drawing.is_page)
    failed = options.Failed(str(corpus))
    failed_queries = options.Failed(str(queries))
    if not (pairs := list(_read_relevant(queries, query, relevant, failed_queries))):
        raise CorpusError(
            "{queries}: has no query with ids in {relevant!r}: nothing can be measured",
            queries=queries,
            relevant=relevant,
        )
    texts, ids = zip(*pairs, strict=True)
    wanted = set(chain(*ids))
    with _index_of(model, corpus, device, given, way or "both", _pairs(corpus, form, text, failed)) as text_index:
        right = {id: text for id, text in text_index if id in wanted}
        if not right:
            raise CorpusError(
                "{queries}: none of the ids in {relevant!r} is that of a text of {corpus}",
                queries=queries,
                relevant=relevant,
                corpus=corpus,
            )
        if unknown := len(wanted) - len(right):
            say(
                Message(
                    "korbert: {queries}: {count:,} ids are of no text of {corpus}, and count as not found",
                    queries=queries, count=unknown, corpus=corpus,
                ),
                err=True,
            )  # fmt: skip
        ways = [way] if way else get_args(SearchWay)[::-1]
        measured = search.evaluation.evaluate(text_index, texts, ids, ways, _reranker(rerank, device))
        facts = {"model": str(model), "queries": len(pairs), "texts": len(text_index)}
    counted = Message("{queries:,} queries, {texts:,} texts", queries=facts["queries"], texts=facts["texts"])
    if as_json:
        figures = {
            name: {key: mean._asdict() for key, mean in scores.figures.items()} for name, scores in measured.items()
        }
        click.echo(inference.lines.as_json({**facts, "ways": figures}))
    else:
        say(counted)
        reports.searching.show_table(measured)
    if page:
        about = Message("{model}, {corpus}: {counted}", model=model.name, corpus=corpus.name, counted=counted)
        written = reports.searching.write_page(page, about, pairs, right, measured)
        say(Message("page: {path}", path=written), err=as_json)
    failed_queries.end()
    failed.end()


def _reranker(folder: Path | None, device: str) -> "korbert.Model | None":
    """Loads the model of kind rerank in a folder, if one is given. Raises ModelError for another kind."""
    if folder is None:
        return None
    model = korbert.load(folder, device)
    weight = search.rerank_kind(model, folder).found_weight
    say(
        Message(
            "korbert: {folder}: search scores are weighted by {weight:g} (setting found_weight)",
            folder=folder, weight=weight,
        ),
        err=True,
    )  # fmt: skip
    return model


@click.command()
@options.model
@click.argument("pairs", type=_PATH)
@click.option("--output", type=options.Output(), required=True, help="File of JSON lines to write.")
@click.option("--count", type=click.IntRange(min=1), default=4, help="Negatives of a pair.")
@_way(default="words", help="Search by BM25 of words, by vectors, or by both.")
@click.option(
    "--most",
    type=options.FloatRange(0, 1),
    default=0.95,
    help="Leave out passages that score more than this share of the right one's score: they may answer, too.",
)
@options.form
@options.on_models
def negatives(
    model: Path, pairs: Path, output: Path, count: int, way: SearchWay, most: float, form: Form, device: str
) -> None:  # fmt: skip
    """Find hard negatives for the queries of PAIRS among its passages.

    PAIRS has columns of queries and passages. Each line of --output has the query, its passage, and as negatives the
    passages that a search finds for the query, except for those that answer it in any row. Train on the file with
    `korbert finetune --kind embedding` or `--kind rerank`.
    """
    from korbert.tasks.kinds.embedding import PASSAGE, QUERY

    check_output(output, model, pairs)
    rows = korbert.tasks.files.read_rows([pairs], [QUERY, PASSAGE], form=form)
    for line in rows.summary():
        say(line, err=True)
    loaded = korbert.load(model, device)
    with TemporaryDirectory(prefix="korbert-index-") as folder:
        index = search.Index.create(folder, loaded, words_only=way == "words")
        with track("index", None, "texts") as advance:
            passages = enumerate(dict.fromkeys(row["pair"] for row in rows))
            index.add(_advancing(((str(number), text) for number, text in passages), advance))
        results = []
        with track("search", len(rows), "queries") as advance:
            mined = search.evaluation.hard_negatives(index, rows.rows, count, way, most=most)
            for row, row_negatives in zip(rows, mined, strict=True):
                results.append({"query": row["text"], "passage": row["pair"], "negatives": row_negatives})
                advance(1)
    write_bytes_atomically(output, b"".join(inference.lines.as_json(result) + b"\n" for result in results))
    num_bare = sum(not result["negatives"] for result in results)
    say(
        Message(
            "{output}: {count:,} pairs, {none:,} of them without negatives",
            output=output, count=len(results), none=num_bare,
        ),
        err=True,
    )  # fmt: skip


def _read_relevant(
    queries: Path, query: str | None, relevant: str, failed: options.Failed
) -> Iterator[tuple[str, list[str]]]:
    """Yields each query of a file with the ids of the texts that answer it; reports records that lack either."""
    records = inference.embedding.text_records(queries, queries.name, text=query, fields=True, role="query")
    for record in chain.from_iterable(records):
        ids = record.get("id") if relevant == "id" else record.get("fields", {}).get(relevant)
        ids = ids if isinstance(ids, list) else [ids]
        if "error" not in record and (not ids or not all(isinstance(id, str | int) and str(id) for id in ids)):
            record["error"] = f"{relevant!r} is no id and no list of ids: name it with --relevant NAME"
        if not record.get("query", "-").strip():
            record["error"] = "is blank: give words to search for"
        if not failed(record):
            yield record["query"], list(map(str, ids))


COMMANDS = [embed, index, similar, search_eval, negatives]
