"""Options of the vector commands, and the records that failed."""

from typing import TYPE_CHECKING, Any, get_args

import click

from korbert.errors import CorpusError
from korbert.pipelines.commands import options
from korbert.records.form import FORMATS
from korbert.terminal import say
from korbert.vectors.names import Mix, PoolingName

if TYPE_CHECKING:
    from korbert.vectors.settings import Asked


class _Layers(click.ParamType[tuple[int, ...]]):
    """Comma-separated layer numbers."""

    name = "N[,N..]"

    def convert(self, value: Any, parameter: Any, context: Any) -> tuple[int, ...]:
        try:
            return value if isinstance(value, tuple) else tuple(int(part) for part in value.split(","))
        except ValueError:
            self.fail(f"{value!r}: give layer numbers, as in -1 or -4,-3,-2,-1", parameter, context)


layers = options.together(
    click.option("--layer", type=_Layers(), help="Layers to use: 0 the embeddings, -1 the last layer.  [default: -1]"),
    click.option("--mix", type=click.Choice(get_args(Mix)), help="How to combine several layers.  [default: mean]"),
)
vectors = options.together(
    layers,
    click.option("--pooling", type=click.Choice(get_args(PoolingName)),
                 help="How piece vectors are pooled into one text vector.  [default: the model's, else mean]"),
    click.option("--no-special-tokens", is_flag=True, help="Leave [CLS] and [SEP] out of the pooling."),
    click.option("--size", type=click.IntRange(min=1), help="Keep only the first N dimensions."),
    options.precision,
)  # fmt: skip
records = options.together(
    click.option("--text", metavar="NAME", help="Text column or key.  [default: text, document, 문장, ..]"),
    click.option("--form", type=click.Choice(FORMATS), default="auto",
                 help="File format; auto: by file name, else by the first line."),
)  # fmt: skip


def asked_for(given: dict[str, Any]) -> "Asked":
    """The vector settings among the given options."""
    asked: Asked = {}
    for name in ("layer", "mix", "pooling", "side", "size"):
        if given.get(name) is not None:
            asked[name] = given[name]
    if given.get("no_special_tokens"):
        asked["special_tokens"] = False
    if given.get("normalize"):
        asked["normalize"] = True
    return asked


class Failed:
    """Counts the records of a file, and reports each error on standard error."""

    def __init__(self, name: str) -> None:
        self.name, self.lines, self.failed = name, 0, 0

    def __call__(self, record: dict[str, Any]) -> bool:
        """Whether the record has an error."""
        self.lines += 1
        if "error" in record:
            say(f"korbert: {self.name}: line {record['line']}: {record['error']}", err=True)
            self.failed += 1
        elif record.get("cut"):
            say(f"korbert: {self.name}: line {record['line']}: only its beginning was read", err=True)
        return "error" in record

    def end(self) -> None:
        """Raise CorpusError if any record had an error."""
        if self.failed:
            raise CorpusError(f"{self.name}: {self.failed:,} of {self.lines:,} lines failed: see the messages above")
