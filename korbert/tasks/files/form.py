"""The names of the formats, for settings and commands, which read no file. Each is opened by forms.py."""

from typing import Literal, get_args

__all__ = ["FORMS", "Form"]

Form = Literal[
    "auto", "csv", "tsv", "tsv-plain", "tsv-quoted", "jsonl", "json", "parquet", "arrow", "conll", "conllu", "klue-ner"
]
FORMS: tuple[Form, ...] = get_args(Form)
