"""Model folders on the Hugging Face Hub: its cache, its tokens and its settings are those of `huggingface_hub`."""

from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from typing import Any

from korbert.errors import ModelError, ModelFailed
from korbert.system import package

_FILES = ["config.json", "model.safetensors", "encoder.onnx", "tokenizer/*"]
_CARD = """---
language: ko
library_name: korbert
---

A model of [korbert](https://pypi.org/project/korbert/):

```python
import korbert

model = korbert.load("hf:{repo}")  # it can {can}
```
"""


@cache
def download(repo: str) -> Path:
    """Returns the folder of a model in the cache, with its newest files; without a network, with the cached ones.

    repo: USER/NAME or USER/NAME@REVISION. Looked up once in a process. ModelError if it is not on the Hub, or if the
    Hub cannot be reached and the cache does not have it.
    """
    name, _, revision = repo.partition("@")
    with _translated_errors(repo, "check the name, and log in with `hf auth login` if it is private") as hub:
        return Path(hub.snapshot_download(name, revision=revision or None, allow_patterns=_FILES))


def upload(folder: Path, repo: str, can: str, *, private: bool | None, message: str) -> str:
    """Writes the files of a model folder to a repository, made if it is absent. Returns its address.

    can: the operations of the model, for the card of a repository that has none.
    """
    with _translated_errors(repo, "log in with `hf auth login`, and name a repository of your own as USER/NAME") as hub:
        url: Any = hub.create_repo(repo, private=private, exist_ok=True)
        if not hub.file_exists(repo, "README.md"):
            (folder / "README.md").write_text(_CARD.format(repo=repo, can=can), encoding="utf-8")
        hub.upload_folder(repo_id=repo, folder_path=folder, commit_message=message)
    download.cache_clear()
    return str(url)


@contextmanager
def _translated_errors(repo: str, remedy: str) -> Iterator[Any]:
    """Yields the library; its errors become a ModelError in one line."""
    hub, errors = (package(name, f"hf:{repo}") for name in ("huggingface_hub", "huggingface_hub.errors"))
    try:
        yield hub
    except errors.LocalEntryNotFoundError:
        raise ModelFailed(
            "hf:{repo}: the Hub cannot be reached, the cache lacks it: check the network", repo=repo
        ) from None
    except (errors.HFValidationError, *errors.HfHubHTTPError.__bases__) as error:  # HTTPError of its client, OSError
        what = " ".join(str(error).split())[:200] or type(error).__name__
        raise ModelError("hf:{repo}: {rstrip}: {remedy}", repo=repo, rstrip=what.rstrip("."), remedy=remedy) from None
