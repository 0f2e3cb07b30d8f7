"""Make the sample's texts: talk.jsonl, wiki.jsonl, ATTRIBUTION.tsv, reviews.jsonl, nsmc/ and law/ in corpus/sample/.

    KORBERT_DATA=DIR python -m benchmarks.make_sample

DIR is filled as docs/data.md says. A hash of each id decides what is taken, so the same data gives the same bytes. The
questions in corpus/sample/korquad/ were written by hand over the articles chosen here; this script leaves them alone.
"""

import csv
import hashlib
import io
import json
import os
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import zstandard

SAMPLE = Path(__file__).resolve().parents[1] / "corpus" / "sample"
WIKI_BYTES, REVIEWS_BYTES = 3_000_000, 1_000_000
NSMC_ROWS = {"train": 10_000, "test": 2_000}
LAW_PAIRS, LAW_CHARS = {"train": 400, "dev": 100}, 800  # of a passage

ARTICLE_CHARS = range(1_000, 12_001)
MIN_PARAGRAPHS = 4  # with several sentences each
MIN_PROSE_SHARE = 0.9  # of the characters, headings included
MIN_HANGUL_SHARE = 0.8  # of the characters that are no white space
MAX_SCARS = 3  # places where the extraction of the text left an empty bracket, such as 수학(, 줄여서 math)
NOT_PROSE_TITLES = re.compile(r"목록|연표|동음이의|계보|순위|기록$|명단|\d+년$|\d+월$|등장인물|에피소드")
SCAR = re.compile(r"\(\s*[,;)]|[,;]\s*\)|\s,|\(\)|《》|''")
MARKUP = re.compile(r"\[\[|\{\{|\||https?:|&[a-z]+;|<[a-z/]|formula_\d")
UNFIT = {  # read and found wanting
    "kowiki-148060",  # 소녀: badly translated
    "kowiki-331432",  # 리바이 스트라우스: badly translated
    "kowiki-1505012",  # 전라도 섬노예: takes sides
    "kowiki-1701535",  # 오오바 켄지: badly translated
    "kowiki-2561938",  # 동구학원: a dispute alone
    "kowiki-3051425",  # 요기보: advertises
    "kowiki-3234401",  # J. P. 스몰 메모리얼 스타디움: badly translated
}
SENTENCE_END = re.compile(r"다\.(?=\s|$|\)|\")")


def read_jsonl(path: Path) -> Iterator[dict[str, Any]]:
    """The rows of a .jsonl.zst file."""
    with path.open("rb") as file:
        frames = zstandard.ZstdDecompressor(max_window_size=2**27).stream_reader(file, read_across_frames=True)
        for line in io.TextIOWrapper(frames, encoding="utf-8", newline="\n"):
            yield json.loads(line)


def order(kind: str, name: str) -> str:
    """The sampling key: rows are taken from the smallest."""
    return hashlib.sha256(f"korbert-sample:{kind}:{name}".encode()).hexdigest()


def folded(text: str) -> str:
    """The key of equal texts: letters and digits; if there are none, all but white space."""
    return "".join(filter(str.isalnum, text.casefold())) or "".join(text.split())


def is_prose(title: str, text: str) -> bool:
    """Whether an article is of reasonable length, mostly paragraphs rather than lists, and hardly damaged."""
    if len(text) not in ARTICLE_CHARS or NOT_PROSE_TITLES.search(title):
        return False
    if MARKUP.search(text) or len(SCAR.findall(text)) > MAX_SCARS:
        return False
    lines = text.split("\n")
    prose = [line for line in lines if len(SENTENCE_END.findall(line)) >= (1 if len(line) < 200 else 2)]
    full = [line for line in prose if len(line) >= 150 and len(SENTENCE_END.findall(line)) >= 2]
    visible = "".join(text.split())
    return (
        len(full) >= MIN_PARAGRAPHS
        and sum(map(len, prose)) >= MIN_PROSE_SHARE * len(text)
        and sum("가" <= char <= "힣" for char in visible) >= MIN_HANGUL_SHARE * len(visible)
        and len(set(lines)) == len(lines)
    )


def first_bytes(rows: list[dict[str, Any]], kind: str, limit: int) -> list[dict[str, Any]]:
    """As many rows as fit into `limit` bytes of JSONL, sampled by hash, in their original order."""
    ids, size = set(), 0
    for row in sorted(rows, key=lambda row: order(kind, row["id"])):
        size += len(json_line(row).encode())
        if size > limit:
            break
        ids.add(row["id"])
    return [row for row in rows if row["id"] in ids]


def json_line(row: dict[str, Any]) -> str:
    return json.dumps(row, ensure_ascii=False) + "\n"


def write(name: str, lines: list[str]) -> None:
    path = SAMPLE / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes("".join(lines).encode())


def make_wiki(data: Path) -> None:
    rows = (row for path in sorted((data / "corpus").glob("wiki-*.jsonl.zst")) for row in read_jsonl(path))
    articles = [row for row in rows if row["id"] not in UNFIT and is_prose(row["title"], row["text"])]
    chosen = first_bytes(articles, "wiki", WIKI_BYTES)
    write("wiki.jsonl", [json_line(row) for row in chosen])
    address = "https://ko.wikipedia.org/?curid="  # of the number in the id: Wikipedia's own, which outlives renaming
    rows = (f"{row['id']}\t{row['title']}\t{address}{row['id'].removeprefix('kowiki-')}\n" for row in chosen)
    write("ATTRIBUTION.tsv", ["id\ttitle\turl\n", *rows])


def read_nsmc(path: Path) -> list[list[str]]:
    """The rows (id, document, label), without the header."""
    return [line.split("\t") for line in path.read_text("utf-8").split("\n")[1:] if line]


def take_nsmc(rows: list[list[str]], count: int, barred: set[str]) -> list[list[str]]:
    """`count` rows by hash, labels in the shares that `rows` has, each text once and none that is barred."""
    remaining = {"1": round(count * sum(row[2] == "1" for row in rows) / len(rows))}
    remaining["0"] = count - remaining["1"]
    seen, taken = set(barred), set()
    for page, text, label in sorted(rows, key=lambda row: order("nsmc", row[0])):
        if remaining[label] and folded(text) not in seen:
            remaining[label] -= 1
            seen.add(folded(text))
            taken.add(page)
    return [row for row in rows if row[0] in taken]


def make_reviews(data: Path) -> None:
    """NSMC rows and reviews: no text of train or of the whole official test set is among the reviews, or in both."""
    source = {part: read_nsmc(data / "nsmc" / f"ratings_{part}.txt") for part in NSMC_ROWS}
    barred = {folded(text) for _, text, _ in source["test"]}
    taken = {
        "test": take_nsmc(source["test"], NSMC_ROWS["test"], set()),
        "train": take_nsmc(source["train"], NSMC_ROWS["train"], barred),
    }
    for part, rows in taken.items():
        write(f"nsmc/ratings_{part}.txt", ["id\tdocument\tlabel\n", *("\t".join(row) + "\n" for row in rows)])
    barred |= {folded(text) for _, text, _ in taken["train"]}
    reviews = [row for row in read_jsonl(data / "corpus" / "reviews.jsonl.zst") if folded(row["text"]) not in barred]
    write("reviews.jsonl", [json_line(row) for row in first_bytes(reviews, "reviews", REVIEWS_BYTES)])


def make_talk(data: Path) -> None:
    """One text per group of questions that pairs label as equal, directly or through others: a line each."""
    groups: dict[str, dict[str, str]] = {}  # folded question -> its group, folded -> question
    for name in ("kor_pair_train.csv", "kor_Pair_test.csv"):
        with next(data.rglob(name)).open(encoding="utf-8-sig", newline="") as file:
            for row in csv.DictReader(file):
                if row["is_duplicate"] == "0":  # 1: they differ
                    pair = {folded(row[column]): row[column].strip() for column in ("question1", "question2")}
                    group = {key: text for one in pair for key, text in groups.get(one, {}).items()} | pair
                    groups |= dict.fromkeys(group, group)
    distinct = {id(group): list(group.values()) for group in groups.values() if len(group) > 1}
    texts = ["\n".join(group) for group in distinct.values()]
    write("talk.jsonl", [json_line({"id": f"talk-{number}", "text": text}) for number, text in enumerate(texts)])


def make_law(data: Path) -> None:
    for part, count in LAW_PAIRS.items():
        rows = [row for row in read_jsonl(data / "law" / f"pairs-{part}.jsonl.zst") if len(row["passage"]) <= LAW_CHARS]
        rows = sorted(rows, key=lambda row: order("law", row["id"]))[:count]
        fields = ("id", "kind", "name", "date", "query", "passage")
        write(f"law/{part}.jsonl", [json_line({name: row[name] for name in fields}) for row in rows])


if __name__ == "__main__":
    for make in (make_talk, make_wiki, make_reviews, make_law):
        make(Path(os.environ["KORBERT_DATA"]))
