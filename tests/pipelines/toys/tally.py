"""A stage of a few lines: counts the words of the documents, part by part."""

import os
import signal

import pyarrow.parquet as pq
from pydantic import BaseModel, Field

from korbert.pipelines.artifacts.figures import ShownFigure
from korbert.pipelines.artifacts.store import read_json
from korbert.pipelines.reports.drawing.elements import Story
from korbert.system.durable import write_json


class Settings(BaseModel, frozen=True, extra="forbid"):
    min_chars: int = Field(1, ge=1, description="characters of the shortest word that counts")


def run(settings, inputs, output, runtime):
    words = 0
    for part in sorted((inputs.artifacts["clean"] / "documents").glob("*.parquet")):
        record = output / "work" / "count" / f"{part.stem}.json"
        if not record.is_file():
            if part.stem == os.environ.get("DIES_AT"):
                os.kill(os.getpid(), signal.SIGKILL)
            texts = pq.read_table(part, columns=["text"])["text"].to_pylist()
            lengths = [len(word) for text in texts for word in text.split()]
            write_json(record, {"words": sum(length >= settings.min_chars for length in lengths)})
        words += (read_json(record) or {})["words"]
    write_json(output / "words.json", {"words": words})
    return {"words": words}


def figures(artifact):
    return (ShownFigure(f"{artifact.record['counts']['words']:,}", "words in the corpus"),)


def story(artifact):
    return Story("Words of the documents", "Counted by white space.", ())
