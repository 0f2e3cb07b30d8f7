"""Every file of the known sets is read whole, by its own columns; counted anew by plain means."""

import csv
import json
from dataclasses import replace

import pandas as pd
import pytest

from korbert.tasks.files import ROLES, read_rows

TEXT, PAIR, LABEL, SCORE = ROLES["text"], ROLES["pair"], ROLES["label"], ROLES["score"]
QUESTION, CHOICES, ID = (ROLES[name] for name in ("question", "choices", "id"))
ANSWER, PARTS = {"label": "Answer"}, ("train", "dev", "test")
TABLES = [  # file, roles, columns that have no usual name
    *((f"hate_speech/{part}.tsv", [TEXT, LABEL], {"label": "hate"}) for part in PARTS[:2]),
    *((f"korsts/sts-{part}.tsv", [TEXT, PAIR, SCORE], {}) for part in PARTS),
    *((f"kornli/xnli.{part}.ko.tsv", [TEXT, PAIR, LABEL], {}) for part in PARTS[1:]),
    *((f"kobest/BoolQ/{part}.tsv", [TEXT, QUESTION, LABEL, ID], ANSWER) for part in PARTS),
    *((f"kobest/COPA/{part}.tsv", [TEXT, QUESTION, CHOICES, LABEL, ID], ANSWER) for part in PARTS),
    *((f"kobest/HellaSwag/{part}.tsv", [ROLES["context"], CHOICES, LABEL], {}) for part in PARTS),
    *((f"kobest/SentiNeg/{part}.tsv", [TEXT, LABEL, ID], {}) for part in PARTS),
    *((f"kobest/WiC/{part}.tsv", [TEXT, PAIR, LABEL, ID], {"label": "ANSWER"}) for part in PARTS),
    ("question_pair/kor_pair_train.csv", [TEXT, PAIR, LABEL, ID], {}),
    ("question_pair/kor_Pair_test.csv", [TEXT, PAIR, LABEL, ID], {"id": "test_id"}),
]
QUOTED = {"hate_speech/train.tsv", "hate_speech/dev.tsv", "kobest/HellaSwag/train.tsv", "kobest/HellaSwag/test.tsv"}


@pytest.mark.parametrize(("name", "roles", "columns"), TABLES, ids=[name for name, _, _ in TABLES])
def test_tables(korbert_data, name, roles, columns):
    path = korbert_data / "tasks" / name
    rows = read_rows(path, roles, columns=columns)
    comma = path.suffix == ".csv"
    quoting = csv.QUOTE_MINIMAL if comma or name in QUOTED else csv.QUOTE_NONE
    plain = {"dtype": str, "na_filter": False, "encoding": "utf-8-sig"}
    table = pd.read_csv(path, sep="," if comma else "\t", quoting=quoting, **plain)
    assert (rows.dropped, rows.notes) == ({}, [])
    assert rows.sources[0].form == ("CSV" if comma else "TSV with quoted fields" if name in QUOTED else "TSV")
    for role, taken in rows.columns.items():
        there = table[taken[0]] if len(taken) == 1 else table[list(taken)].to_numpy()
        value = next(known for known in roles if known.name == role).value
        assert [row[role] for row in rows] == [value(cell if len(taken) == 1 else list(cell)) for cell in there]
    assert len(rows) == path.read_bytes().rstrip(b"\n").count(b"\n")


def test_nsmc_as_pandas_reads_it(korbert_data):
    path = korbert_data / "nsmc" / "ratings_test.txt"
    rows = read_rows(path, [replace(TEXT, required=False), LABEL, ID], form="tsv-plain")
    table = pd.read_csv(path, sep="\t", quoting=csv.QUOTE_NONE, keep_default_na=False)
    texts = table["document"].tolist()
    assert [row["text"] or "" for row in rows] == [text if text.strip() else "" for text in texts]
    assert [row["label"] for row in rows] == table["label"].astype(str).tolist()
    found = read_rows(path, [TEXT, LABEL])
    dropped = {reason: dropped.count for reason, dropped in found.dropped.items()}
    assert dropped == {"no_text": sum(not text.strip() for text in texts)}
    assert len(found) + sum(dropped.values()) == len(table)


def test_an_article_without_paragraphs_is_dropped(tmp_path):
    question = {"context": "서울은 수도다.", "qas": [{"question": "수도는?", "answers": []}, "없다"]}
    articles = [{"paragraphs": [question]}, {"paragraphs": [{"qas": []}]}]
    (tmp_path / "a.json").write_text(json.dumps({"data": articles}), encoding="utf-8")
    rows = read_rows(tmp_path / "a.json", [ROLES["question"], ROLES["answers"]])
    assert rows.rows == [{"question": "수도는?", "answers": []}]
    assert rows.dropped["bad_json"].first == [
        f"{tmp_path / 'a.json'}, record 2: a text where an object belongs",
        f"{tmp_path / 'a.json'}, record 3: article 1 has no list of paragraphs, each with context and qas",
    ]
