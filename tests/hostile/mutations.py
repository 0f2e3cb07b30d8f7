"""Ways to spoil bytes, lines, JSON, TOML and names. All draw from a generator that is given."""

import json
import random
from collections.abc import Callable, Sequence
from typing import Any

Bytes = Callable[[bytes, random.Random], bytes]

DIGITS = "9" * 5_000  # more than Python turns into a number without being asked
_HUGE = "@a number of 5,000 digits@"
_DEEP = "@a list 100,000 deep@"

ODD_TEXTS = (
    "", " ", "\n", "\x00", "\x1b[31m빨강\x1b[0m", "\u202e거꾸로", "\ud800", "\ufeff", "한" * 5_000, "[MASK]",
    "../../나가기", "'; drop table t; --", "<script>alert(1)</script>", "*", "[a-z]", "ᄒ" * 200, "e\u0301" * 50,
    "👨‍👩‍👧‍👦", "NaN", "{{a|" * 50,
)  # fmt: skip
ODD_VALUES: tuple[Any, ...] = (
    None, True, False, 0, -1, 1, 2**63, 10**30, 0.5, -0.0, 1e308, float("inf"), float("nan"), _HUGE, _DEEP,
    [], {}, [[]], [None], {"": ""}, {"a": {"b": 1}}, *ODD_TEXTS,
)  # fmt: skip


def flip(data: bytes, rng: random.Random) -> bytes:
    """One bit."""
    changed = bytearray(data)
    if changed:
        changed[rng.randrange(len(changed))] ^= 1 << rng.randrange(8)
    return bytes(changed)


def zeros(data: bytes, rng: random.Random) -> bytes:
    begin = rng.randrange(len(data) + 1)
    return data[:begin] + bytes(min(64, len(data) - begin)) + data[begin + 64 :]


def _flips(data: bytes, rng: random.Random) -> bytes:
    for _ in range(rng.randrange(1, 30)):
        data = flip(data, rng)
    return data


def _inserted(*given: bytes) -> Bytes:
    def insert(data: bytes, rng: random.Random) -> bytes:
        place = rng.randrange(len(data) + 1)
        return data[:place] + rng.choice(given) + data[place:]

    return insert


def _as_encoding(name: str) -> Bytes:
    return lambda data, rng: data.decode("utf-8", "replace").encode(name, "replace")


def _lines_shuffled(data: bytes, rng: random.Random) -> bytes:
    lines = data.splitlines(keepends=True)
    rng.shuffle(lines)
    return b"".join(lines)


OF_BYTES: Sequence[Bytes] = (
    flip,
    zeros,
    _flips,
    _lines_shuffled,
    lambda data, rng: data[: rng.randrange(len(data) + 1)],
    lambda data, rng: data[:-1],
    lambda data, rng: b"",
    lambda data, rng: data + data,
    lambda data, rng: data + rng.choice(data.splitlines(keepends=True) or [b""]),
    lambda data, rng: rng.choice((b"\n", b" \n\t\n", b"\xef\xbb\xbf", b"\x00" * 100, b"\r\n")),
    lambda data, rng: rng.randbytes(rng.choice((1, 20, 5_000))),
    lambda data, rng: data.replace(b"\n", rng.choice((b"\r\n", b"\r", b"\n\n", b"\x0b", b"\xe2\x80\xa8"))),
    lambda data, rng: data + rng.choice(("가나다 ", "ㅋ", "a", "{", "[", '"', "\t")).encode() * 100_000 + b"\n",
    _inserted(b"\x00", b"\xff\xfe", b"\xed\xa0\x80", b"\x1b[2J", b"\xef\xbb\xbf", b"\xc0\x80"),
    _inserted(b"\n", b"\t", b'"', b"\\", b"\r", b",", b"}"),
    *(_as_encoding(name) for name in ("cp949", "utf-16", "utf-16-be", "utf-8-sig", "utf-32")),
)


def spoiled(data: bytes, rng: random.Random) -> bytes:
    return rng.choice(OF_BYTES)(data, rng)


def spoiled_json(data: bytes, rng: random.Random, times: int = 1) -> bytes:
    """JSON that is still JSON, but for what `json` itself writes and reads: NaN, lone surrogates."""
    value = json.loads(data)
    for _ in range(times):
        value = _warped(value, rng)
    return dumped(value, rng)


def dumped(value: Any, rng: random.Random) -> bytes:
    text = json.dumps(value, ensure_ascii=rng.random() < 0.5)
    text = text.replace(json.dumps(_HUGE), DIGITS).replace(json.dumps(_DEEP), "[" * 100_000 + "]" * 100_000)
    return text.encode("utf-8", "surrogatepass")


def _warped(value: Any, rng: random.Random) -> Any:
    """The value with one of its nodes replaced, taken out, doubled or added to."""
    if not isinstance(value, dict | list) or not value or rng.random() < 0.15:
        return rng.choice(ODD_VALUES)
    copied = value.copy()
    if isinstance(copied, list):
        place = rng.randrange(len(copied))
        match rng.randrange(4):
            case 0:
                del copied[place]
            case 1:
                copied.append(copied[place])
            case _:
                copied[place] = _warped(copied[place], rng)
        return copied
    key = rng.choice(list(copied))
    match rng.randrange(5):
        case 0:
            del copied[key]
        case 1:
            copied[rng.choice(ODD_TEXTS)] = rng.choice(ODD_VALUES)
        case _:
            copied[key] = _warped(copied[key], rng)
    return copied


def spoiled_lines(data: bytes, rng: random.Random) -> bytes:
    """JSON lines, some of them other JSON."""
    lines = data.splitlines()
    for _ in range(rng.randrange(1, 6)):
        place = rng.randrange(len(lines))
        lines[place] = spoiled_json(lines[place], rng) if lines[place].startswith(b"{") else lines[place]
    return b"\n".join(lines) + b"\n"


ODD_SETTINGS = (
    "inf", "-inf", "nan", "1e999", DIGITS, f"-{DIGITS}", f"0.{DIGITS}", "-1", "0", "0.5", "1.0", "true", "[]", "{}", "",
    " ", '""', '"가"', "가나다", "[1, 2]", "[[[]]]", "{a = 1}", "1979-05-27", "0x10", "1_000", "9223372036854775808",
    "1e308", "5e-324", "'''\nx'''", '"\\ud800"', '"\x1b[31m"', "none", "null", "1\n[clean]", "#", "1 # x", '"\\u0000"',
    "../..", "[" * 2_000, "{a=" * 500,
)  # fmt: skip
KEYS = (
    "seed", "heldout_share", "threads", "precision", "clean", "clean.part_bytes", "clean.sources",
    "clean.filters.min_chars", "clean.filters.max_word_chars", "clean.filters.min_hangul_share",
    "clean.filters.max_top_ngram_shares", "clean.duplicates.near", "clean.duplicates.line_documents",
    "clean.normalize.max_repeats", "clean.personal.email", "clean.evaluation", "clean.decontamination.terms",
    "analyze.part_bytes", "analyze.deadline_seconds", "analyze.user_words", "analyze.options.dialects",
    "analyze.options", "vocab.size", "vocab.mark", "vocab.words", "vocab.character_coverage", "vocab.min_documents",
    "vocab.max_piece_chars", "vocab.foreign_share", "shard.part_bytes", "shard.seed", "pretrain.phases",
    "pretrain.seed", "pretrain.precision", "pretrain.threads", "pretrain.encoder.hidden_size",
    "pretrain.encoder.num_attention_heads", "pretrain.encoder.architecture", "pretrain.encoder.dropout",
    "pretrain.optimizer.learning_rate", "pretrain.optimizer.epsilon", "pretrain.optimizer.max_grad_norm",
    "pretrain.masking.rate", "pretrain.pairs.without", "pretrain.heldout_rows", "pretrain.checkpoint_every",
    "nsmc.learning_rates", "nsmc.epochs", "nsmc.train", "nsmc.seeds", "nsmc.label_names", "nsmc.validation_share",
    "korquad.train", "korquad.max_length", "korquad.stride", "korquad.epochs", "korquad.weight_decay",
    "korquad.n_best",
)  # fmt: skip
ODD_KEYS = (
    "", ".", "a", "a.b", "a.b.c.d", "vocab", "vocab.", ".size", "vocab.sise", "vocab.size.x", "clean.sources.0",
    "clean.sources.path", "name", "given", "모델.크기", "__class__", "pretrain.encoder.vocab_size", "vocab size",
    "clean.part_bytes.a.b", "vocab..size", "clean.filters", "pretrain.phases.0.steps",
)  # fmt: skip
