"""A toy task, whole: headlines of three topics in a file format of its own, `topic/id: headline`."""

from pathlib import Path

import numpy as np
import pandas as pd
from pydantic import Field

from korbert.errors import CorpusError
from korbert.tasks.classification_settings import ClassificationTaskSettings
from pipelines.tasks import ClassificationTask

TOPICS = ("날씨", "경제", "운동")

_BEGINNINGS = (
    ("오늘 비가 내린다", "내일 눈이 온다", "바람이 강하다"),
    ("물가가 올랐다", "은행 금리가 내렸다", "수출이 늘었다"),
    ("축구 경기에서 이겼다", "선수가 골을 넣었다", "야구 경기가 열렸다"),
)
_ENDINGS = ("", " 오늘", " 서울에서", "고 한다", " 정말", "!")


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


def write(path: Path, count: int, seed: int) -> None:
    generator = np.random.default_rng(seed)
    lines = []
    for number in range(count):
        topic = int(generator.choice(3, p=[0.5, 0.3, 0.2]))
        said = topic if generator.random() < 0.85 else int(generator.integers(3))  # so that scores are below 1
        text = f"{generator.choice(_BEGINNINGS[said])}{generator.choice(_ENDINGS)}"
        lines.append(f"{TOPICS[topic]}/{number}: {text}\n")
    path.write_text("".join(lines), encoding="utf-8")


ENTRY = ClassificationTask(
    name="topics",
    title="Topics",
    settings=TopicSettings,
    read=read,
    labels=TOPICS,
    metrics=("macro_f1", "accuracy"),
    texts="headlines",
)
