"""What a model does with a text, as one page: attention, neurons, guesses, pieces, vectors, words, answers.

look_data.py computes what the page shows. Without data the page asks the service that it comes from. The page needs no
model, so that a service has it while models are loaded.
"""

import base64
import hashlib
import json
from collections.abc import Mapping
from importlib.resources import files
from typing import Any

from markupsafe import Markup

from pipelines.reports.page import filled

__all__ = ["page"]

# Files of templates/look/, in the order in which they run.
_SCRIPTS = ("data", "attention", "strips", "matrix", "neurons", "guesses", "texts", "words", "page")


def page(data: Mapping[str, Any] | None) -> str:
    """The page, whole: no scripts, fonts or styles from elsewhere. None: as the service gives it, which it then asks.

    Text never becomes markup: `<` is an escape in the JSON, and no other script than the page's own runs.
    """
    said = "null" if data is None else json.dumps(data, separators=(",", ":"))  # ASCII: surrogates are escapes
    for char in "<>&":
        said = said.replace(char, f"\\u{ord(char):04x}")
    folder = files("pipelines.reports") / "templates" / "look"
    script = "\n".join((folder / f"{name}.js").read_text(encoding="utf-8") for name in _SCRIPTS)
    digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    return filled("look.html", data=Markup(said), script=Markup(script), digest=Markup(digest))
