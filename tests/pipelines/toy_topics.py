"""A toy task, whole: headlines of three topics in a file format of its own, `topic/id: headline`."""

from pathlib import Path

import pandas as pd
from pydantic import Field

from korbert.errors import CorpusError
from korbert.tasks.classification_settings import ClassificationTaskSettings
from pipelines.tasks import ClassificationTask

TOPICS = ("날씨", "경제", "운동")


class TopicSettings(ClassificationTaskSettings, frozen=True, extra="forbid"):
    train: str = Field("topics/train.txt")
    test: str = Field("topics/test.txt")


def read(path: Path) -> pd.DataFrame:
    rows = []
    for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), start=1):
        head, colon, text = line.partition(": ")
        topic, slash, id = head.partition("/")
        if not colon or not slash or topic not in TOPICS:
            raise CorpusError(f"{path}, line {number}: {line!r} is not `topic/id: headline`: mend it")
        rows.append({"id": id, "text": text, "label": TOPICS.index(topic)})
    return pd.DataFrame(rows)


ENTRY = ClassificationTask(
    name="topics",
    title="Topics",
    settings=TopicSettings,
    read=read,
    labels=TOPICS,
    metrics=("macro_f1", "accuracy"),
    texts="headlines",
)
