"""Format names, for settings and commands that read no file. detection.py opens the files."""

from typing import Literal, NewType, get_args

Named = Literal[
    "auto", "csv", "tsv", "tsv-plain", "tsv-quoted", "jsonl", "json", "parquet", "arrow", "conll", "conllu", "klue-ner",
    "xlsx",
]  # fmt: skip
Sheet = NewType("Sheet", str)
"""A sheet of a workbook: xlsx:NAME."""
Form = Named | Sheet
FORMS: tuple[Named, ...] = get_args(Named)

Format = Literal["lines"] | Form  # of commands that also read plain lines of text
FORMATS: tuple[Format, ...] = ("auto", "lines", *FORMS[1:])
