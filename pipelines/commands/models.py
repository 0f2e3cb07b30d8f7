"""Commands on tokenizers and models: tokenize, fill, look, export, import, pack, models."""

from dataclasses import asdict
from pathlib import Path
from typing import Any, Literal

import click

import korbert
from korbert import huggingface, modeling, tokenization
from korbert.errors import CorpusError, ModelError, ModelFailed, SettingsError
from korbert.folders import model_folder
from korbert.messages import Message, join_messages
from korbert.pipelines import inference, reports
from korbert.pipelines.artifacts.formatting import megabytes
from korbert.pipelines.commands import options
from korbert.system import JsonObject, check_output, console, say, write_bytes_atomically
from korbert.tasks.kinds import kind_of_task

_FILE = options.PathType()
_MOST_PLACES = 60  # occurrences of a word: so many rows and columns fit a page
_USES = {
    "pretraining": Message("gaps filled, vectors of texts"),
    **dict.fromkeys(("encoder", "detection"), Message("vectors of texts")),
}
_SENTENCE = "나는 어제 학교에 갔다가 친구를 만났는데, 정말 반가웠어! 👍🏻 뷁"  # to show an imported tokenizer


@click.command()
@click.argument("tokenizer", type=_FILE)
@options.texts
@options.as_json
@click.option("--special-tokens", is_flag=True, help="Parse [MASK] and the like in the text as special tokens.")
@click.option("--check", is_flag=True, help="Report how many pieces the installed Kiwi would change, and stop.")
@options.accept_kiwi
@options.debug
def tokenize(
    tokenizer: Path,
    texts: tuple[str, ...],
    input: options.Input | None,
    as_json: bool,
    special_tokens: bool,
    check: bool,
) -> None:
    """Split TEXT into pieces.

    Shows id, span, characters, tag and eojeol of each piece. TOKENIZER is a tokenizer folder, a model folder, or an
    artifact with either. Without TEXT, lines are read from --input or standard input, up to 1 MiB each.
    """
    tokenizing = inference.tokenizing
    if check:
        say(tokenizing.describe_change(tokenization.Tokenizer.load(tokenizer, accept_kiwi=True)))
        return
    source = options.texts_of(texts, input)
    loaded = tokenization.load_tokenizer(tokenizer)
    for _, text in source:
        encoded = loaded.encode_pieces(text, special_tokens=special_tokens)
        if as_json:
            pieces = list(tokenizing.token_rows(encoded))
            click.echo(inference.lines.as_json({"text": text, "pieces": pieces}))
        else:
            tokenizing.print_table(text, encoded)


@click.command()
@options.model
@options.texts
@click.option("--top", type=click.IntRange(min=1), default=5, help="Number of candidates per gap.")
@options.as_json
@options.on_models
def fill(
    model: Path, texts: tuple[str, ...], input: options.Input | None, top: int, as_json: bool, device: str
) -> None:
    """Fill each [MASK] in TEXT with the most probable pieces.

    MODEL is korbert-mini, or a pretrain artifact such as artifacts/demo/pretrain. Texts are arguments, or lines of
    --input or standard input; one call with many texts is faster than many calls. Each output line shows the number of
    the gap, probability, piece, and the whole text with the other gaps filled by their most probable pieces.
    """
    source = options.texts_of(texts, input)
    loaded = korbert.load(model, device=device)
    loaded.require("fill")
    for place, text in source:
        try:
            gaps = loaded.fill(text, top=top)
        except ModelError as error:
            raise (ModelError if texts else ModelFailed)(f"{place}: {error}") from None  # earlier lines are answered
        if as_json:
            rows = [list(map(asdict, candidates)) for candidates in gaps]
            click.echo(inference.lines.as_json({"text": text, "gaps": rows}))
            continue
        for number, candidates in enumerate(gaps, 1):
            for candidate in candidates:
                say(f"{number}  {candidate.probability:.4f}  {candidate.piece}  {candidate.text}")


@click.command()
@options.model
@click.argument("folder", type=options.Output())
@click.option("--onnx", is_flag=True, help="Write a korbert model that runs in ONNX Runtime, and compare outputs.")
@click.option(
    "--bits", type=click.Choice(["8", "32"]), help="With --onnx; 8 is faster and slightly less exact.  [default: 32]"
)
@options.accept_kiwi
@options.debug
def export(model: Path, folder: Path, onnx: bool, bits: str | None) -> None:
    """Export MODEL for Hugging Face transformers or ONNX Runtime.

    MODEL is an artifact with a model, or its model/. FOLDER is created. An artifact's records also become README.md, a
    model card.

    With --onnx, `embed`, `predict`, `serve` and `korbert.load` accept the result and run faster on CPU. It has only the
    last layer and no MLM head, and cannot be trained. Other programs can use its encoder.onnx to compute piece vectors.
    """
    if onnx:
        width: Literal[8, 32] = 8 if bits == "8" else 32
        compared = modeling.export_onnx(model, folder, width)
        say(Message("piece vectors: largest difference {difference:.2e}", difference=compared["vectors"]))
        say(Message("text vectors: smallest cosine {cosine:.6f}", cosine=compared["cosine"]))
        say(folder)
        return
    if bits:
        raise click.UsageError(Message("--bits needs --onnx"))
    for line in huggingface.export(model, folder):
        say(line, err=True)
    if card := reports.cards.write_card(model, folder):
        say(Message("{card}: add a licence before you publish it", card=card))
    say(folder)


@click.command("import")
@click.argument("folder", type=options.PathType())
@click.argument("target", type=options.Output())
@options.debug
def import_(folder: Path, target: Path) -> None:
    """Import a Hugging Face model folder.

    FOLDER is local and holds config.json, safetensors and a tokenizer (BERT, ELECTRA, RoBERTa, ALBERT, DistilBERT,
    DeBERTa-v2, ModernBERT, ConvBERT, Funnel, Longformer, XLM, XLM-R, FlauBERT). TARGET is created: a model of kind
    "encoder" with its own tokenizer, ready for fine-tuning. No code from FOLDER is executed.
    """
    model, tokenizer = huggingface.import_folder(folder, target)
    config: Any = model.config
    pieces = tokenizer.encode_pieces(_SENTENCE)
    spelled = zip(pieces.pieces, pieces.spans, strict=True)
    shown = " ".join(_SENTENCE[start:end] or piece for piece, (start, end) in spelled)
    say(f"architecture: {config.model_type}, {config.num_hidden_layers} layers of {config.hidden_size}")
    say(f"parameters: {sum(weights.numel() for weights in model.parameters()):,}")
    say(f"vocabulary: {config.vocab_size:,} entries; {type(tokenizer.theirs).__name__}")
    say(f"maximum length: {config.max_position_embeddings:,} pieces")
    say(f"text: {_SENTENCE}")
    say(f"pieces: {shown} ({len(pieces)}, {pieces.ids.count(tokenizer.unk_id)} of them unknown)")
    say(target)


@click.command()
@options.model
@click.argument("folder", type=options.Output())
@click.option(
    "--base", type=_FILE, help="Packed folder next to FOLDER, or bundled model, that holds the shared tensors."
)
@options.accept_kiwi
@options.debug
def pack(model: Path, folder: Path, base: Path | None) -> None:
    """Compress MODEL: large matrices in 8 bits, the rest in 16.

    FOLDER is created and used like any other model; in memory, weights are 32-bit again. A fine-tuned model with frozen
    embeddings (frozen_embeddings) takes a tenth of the space with the pretrained model as its base.
    """
    say(f"{folder}: {modeling.pack(model, folder, base) / 1e6:.1f} MB")


@click.command()
@options.model
@click.argument("text", required=False)
@click.argument("pair", required=False)
@click.option("--html", type=options.Output(), help="HTML page to write.")
@click.option("--word", help="Compare the vectors of this word in --sentences instead.")
@click.option("--sentences", type=options.InputType(), help="File of sentences, one per line, or a table.")
@options.layers
@options.on_models
def look(
    model: Path, text: str | None, pair: str | None, html: Path | None, word: str | None,
    sentences: options.Input | None, device: str, **given: Any,
) -> None:  # fmt: skip
    """Visualize MODEL on TEXT, or on TEXT and PAIR.

    The page shows attention, neurons, predictions and vectors. MODEL is an artifact with a model, or its model/. The
    page is self-contained and opens without a server or network. A KorQuAD model takes a question and a context, in
    this order.

    With --word and --sentences instead of TEXT, the vectors of a word are compared wherever it stands: their cosines
    as a table, and on the page as colours. The word is a morpheme, or several; of a verb it is the stem.

    \b
    Examples:
      korbert look artifacts/small/pretrain '신용 대출을 신청하고 싶어요' --html look.html
      korbert look korbert-mini --word 사랑 --sentences sentences.txt --html love.html
    """
    word_settings = {name: value for name, value in given.items() if value is not None}
    if html:
        check_output(html, model, sentences and sentences.file, may_overwrite=reports.drawing.is_page)
    if word and sentences and text is None:
        _compare(korbert.load(model, device), word, sentences, html, word_settings)
        return
    if text is None or html is None or word or sentences or word_settings:
        raise SettingsError("give TEXT and --html alone, or --word and --sentences, with --html, --layer, --mix or not")
    loaded = korbert.load(model, device)
    try:
        data = reports.look.data.look_data(loaded, text, pair, whole=True)
    except ModelError as error:
        raise ModelError("{model}: {error}", model=model, error=error) from None
    write_bytes_atomically(html, reports.look.page.page(data).encode())
    say(html)


def _compare(
    loaded: "korbert.Model", word: str, sentences: options.Input, html: Path | None, settings: JsonObject
) -> None:
    """Prints the cosines between the vectors of a word in the sentences of a file, and writes a page of them.

    settings: layers and mix of the vectors.
    """
    occurrences: list[Any] = []
    for place, text in inference.lines.texts(sentences.file, sentences.name, "auto"):
        occurrences.append(loaded.parts(text, **settings).occurrences(word))
        if text.strip() and not len(occurrences[-1]):
            say(
                Message(
                    "korbert: {place}: no morpheme of its first {pieces:,} pieces is {word!r}",
                    place=place, pieces=loaded.max_length, word=word,
                ),
                err=True,
            )  # fmt: skip
    count = sum(map(len, occurrences))
    if not 2 <= count <= _MOST_PLACES:
        raise CorpusError(
            "{sentences}: places of {word!r}: {count:,}; 2 to {most_places} can be compared: give other "
            "sentences, or another word: one or more morphemes, as `korbert tokenize` shows them",
            sentences=sentences.name,
            word=word,
            count=count,
            most_places=_MOST_PLACES,
        )
    counted = Message("{sentences} sentences, {places} places", sentences=sum(map(bool, occurrences)), places=count)
    layers = loaded.vector_settings(**settings).layer_indices(loaded.network.config.num_hidden_layers)
    about = join_messages(
        (Path(loaded.name).name, counted, *(Message("layer {layer}", layer=layer) for layer in layers)), ", "
    )
    rows = reports.look.data.word_rows(occurrences)
    cells = [
        (str(number), f"{before}[{spelled}]{after}", *(f"{cosine:.3f}" for cosine in cosines))
        for number, (before, spelled, after, cosines) in enumerate(rows, 1)
    ]
    head = ("", Message("sentence"), *(row[0] for row in cells))
    reports.summary.show_tables(
        [reports.drawing.TableElement(about, head, cells, f"rk{'r' * count}")],
        out=console(width=60 + 9 * count, highlight=False),  # a row stays in a line, whatever the terminal's width
    )
    if html:
        say(Message("page: {path}", path=reports.drawing.write(html, "word.html", word=word, about=about, rows=rows)))


@click.command("models")
@click.argument("folder", type=_FILE, default=".")
@options.debug
def list_models(folder: Path) -> None:
    """List the models at hand: those that come with korbert, and those in FOLDER.

    FOLDER is the current folder by default, and is searched four levels deep. Shows the name for MODEL, the kind, what
    it predicts, and the size on disk.
    """
    for name in korbert.models(folder):
        try:
            config = modeling.read_config(name)
            task = {"kind": config["kind"], **config["task"]}
            what = _USES.get(task["kind"]) or kind_of_task(task, name).description()
        except (ModelError, SettingsError) as error:
            say(f"{name}  {error}")
            continue
        size = sum(path.stat().st_size for path in model_folder(name).rglob("*") if path.is_file())
        say(join_messages((name, join_messages((f"{task['kind']}:", what), " "), megabytes(size)), "  "))


COMMANDS = [tokenize, fill, look, export, import_, pack, list_models]
