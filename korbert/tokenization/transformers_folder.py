"""Opens, saves and inspects tokenizers of `transformers`, for transformers_tokenizer.py."""

import hashlib
import json
from collections.abc import Mapping
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from korbert._transformers import quietly, reason_of, transformers
from korbert.durable import read_object
from korbert.errors import ModelError
from korbert.tokenization.encoding import Frame

FORMAT = 1
KIND = "transformers"  # in the record of the folder

_VOCABULARIES = (".model", ".codes", "merges.txt")
_MACHINE_KEYS = ("name_or_path", "is_local", "local_files_only", "_commit_hash")  # say where it was loaded, not what


def opened(folder: Path) -> Any:
    """AutoTokenizer of a local folder, without running its code. ModelError if there is none."""
    package = transformers("a tokenizer of transformers")
    try:
        with quietly():
            return package.AutoTokenizer.from_pretrained(folder, local_files_only=True, trust_remote_code=False)
    except Exception as error:  # each class has errors of its own
        raise ModelError(f"{folder}: its tokenizer cannot be loaded ({reason_of(error)}): save it anew") from None


def saved_files(folder: Path) -> tuple[Any, dict[str, bytes]]:
    """The tokenizer of a folder; what it saves of itself, and the model_type, by which its class is found again."""
    config = folder / "tokenizer_config.json"
    try:
        settings = read_object(config) if config.is_file() else {}
        model_type = read_object(folder / "config.json").get("model_type")
    except (OSError, ValueError) as error:
        raise ModelError(f"{folder}: cannot be read ({error}): name a folder that transformers has written") from None
    if settings.get("auto_map"):
        raise ModelError(f"{config}: auto_map: the tokenizer needs code of its folder, which is never run")
    length = settings.get("model_max_length")
    if length is not None and (isinstance(length, bool) or not isinstance(length, int | float) or not length >= 3):
        raise ModelError(f"{config}: model_max_length: {length!r:.60} is not a number of pieces: correct it")
    names = [path.name for path in folder.iterdir()]
    if not any(name == "tokenizer.json" or name.startswith("vocab.") or name.endswith(_VOCABULARIES) for name in names):
        raise ModelError(f"{folder}: has no tokenizer (tokenizer.json, vocab.txt, ..): put its files there")
    theirs = opened(folder)
    with TemporaryDirectory(prefix="korbert-tokenizer-") as aside:
        theirs.save_pretrained(aside)
        files = {path.name: path.read_bytes() for path in sorted(Path(aside).iterdir()) if path.is_file()}
    if "tokenizer_config.json" in files:
        saved = json.loads(files["tokenizer_config.json"])
        kept = {key: value for key, value in saved.items() if key not in _MACHINE_KEYS}
        files["tokenizer_config.json"] = (json.dumps(kept, ensure_ascii=False, indent=2) + "\n").encode()
    files["config.json"] = (json.dumps({"model_type": model_type}) + "\n").encode()
    return theirs, files


def digest(files: Mapping[str, bytes]) -> str:
    """SHA-256 (hex) over the names and bytes of all files."""
    sums = {name: hashlib.sha256(data).hexdigest() for name, data in files.items()}
    return hashlib.sha256(json.dumps([FORMAT, KIND, sums], sort_keys=True, ensure_ascii=False).encode()).hexdigest()


def ids_of(theirs: Any, *texts: str, **options: bool) -> list[int]:
    """The ids that their tokenizer gives a text or a pair. ModelError if it fails, as without an unknown token."""
    try:
        return list(theirs(*texts, **options)["input_ids"])
    except Exception as error:  # each class has errors of its own
        raise ModelError(f"its tokenizer cannot encode a text ({reason_of(error)}): correct its files") from None


def frame_of(theirs: Any) -> Frame:
    """The special tokens that their tokenizer puts around and between texts. ModelError for an unsupported frame."""
    body, alone, pair = ids_of(theirs, "가", add_special_tokens=False), ids_of(theirs, "가"), ids_of(theirs, "가", "가")
    first, last = alone[0], alone[-1]
    between = pair[1 + len(body) : -1 - len(body)]
    if alone != [first, *body, last] or not between or pair != [first, *body, *[last] * len(between), *body, last]:
        raise ModelError(
            f"its tokenizer puts special tokens around texts as in {theirs.convert_ids_to_tokens(pair)}: one before"
            " the first and the same one behind each is needed, as of BERT and RoBERTa"
        )
    cls, sep = theirs.convert_ids_to_tokens([first, last])
    return Frame(first, last, cls, sep, len(between))
