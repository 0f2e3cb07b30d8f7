"""Files that tests read."""

import json
from pathlib import Path
from typing import Any


def written(folder: Path, name: str, value: Any) -> Path:
    """The path of a new file: text or bytes as they are, a list as lines of a .jsonl file, other values as JSON."""
    if isinstance(value, list) and name.endswith(".jsonl"):
        value = "".join(json.dumps(record, ensure_ascii=False) + "\n" for record in value)
    elif not isinstance(value, str | bytes):
        value = json.dumps(value, ensure_ascii=False, indent=1)
    path = folder / name
    path.write_bytes(value if isinstance(value, bytes) else value.encode())
    return path
