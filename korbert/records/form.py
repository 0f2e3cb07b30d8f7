"""Format names, for settings and commands that read no file. detection.py opens the files."""

from typing import Literal, get_args

Form = Literal[
    "auto", "csv", "tsv", "tsv-plain", "tsv-quoted", "jsonl", "json", "parquet", "arrow", "conll", "conllu", "klue-ner"
]
FORMS: tuple[Form, ...] = get_args(Form)

Format = Literal["lines"] | Form  # of commands that also read plain lines of text
FORMATS: tuple[Format, ...] = ("auto", "lines", *FORMS[1:])
