"""A recipe of seconds with all stages, and its files: some of the sample that the repository carries."""

import itertools
import json
from pathlib import Path

RECIPE = """\
seed = 1
heldout_share = 0.2
threads = 1
precision = "fp32"

[[clean.sources]]
name = "wiki"
path = "wiki.jsonl"

[[clean.sources]]
name = "reviews"
path = "reviews.jsonl"

[clean]
part_bytes = 2_048

[analyze]
part_bytes = 2_048

[vocab]
size = 1_600

[shard]
part_bytes = 4_096

[pretrain]
phases = [{ length = 64, batch_size = 8, steps = 40 }, { length = 128, batch_size = 4, steps = 20 }]
evaluate_every = 20
checkpoint_every = 5
heldout_rows = 16

[pretrain.encoder]
hidden_size = 32
num_hidden_layers = 1
num_attention_heads = 2
intermediate_size = 64

[pretrain.optimizer]
learning_rate = 1e-3

[nsmc]
train = "ratings_train.txt"
test = "ratings_test.txt"
validation_share = 0.2
epochs = 2
batch_size = 8
checkpoint_every = 5

[korquad]
train = "train.json"
test = "valid.json"
max_length = 128
stride = 32
max_query_pieces = 32
epochs = 2
batch_size = 8
checkpoint_every = 2
"""


def write_data(sample, folder, recipe=RECIPE, articles=20, reviews=30, ratings=(200, 100), questions=(6, 2)) -> Path:
    """The recipe tiny.toml, and the files it names: short articles, reviews, rows of NSMC, articles of KorQuAD."""
    folder.mkdir(parents=True, exist_ok=True)
    lines = (sample / "wiki.jsonl").read_text(encoding="utf-8").splitlines(keepends=True)
    (folder / "wiki.jsonl").write_text("".join(sorted(lines, key=len)[:articles]), encoding="utf-8")
    names = "reviews.jsonl", "nsmc/ratings_train.txt", "nsmc/ratings_test.txt"
    for name, count in zip(names, (reviews, ratings[0] + 1, ratings[1] + 1), strict=True):
        with (sample / name).open(encoding="utf-8") as file:
            (folder / Path(name).name).write_text("".join(itertools.islice(file, count)), encoding="utf-8")
    for name, count in zip(("train.json", "valid.json"), questions, strict=True):
        content = json.loads((sample / "korquad" / name).read_text(encoding="utf-8"))
        content["data"] = content["data"][:count]
        (folder / name).write_text(json.dumps(content, ensure_ascii=False), encoding="utf-8")
    (folder / "tiny.toml").write_text(recipe, encoding="utf-8")
    return folder / "tiny.toml"
