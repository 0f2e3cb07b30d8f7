"""The page that shows what a model does with a text: attention, neurons, guesses, pieces, vectors.

data.py computes its data. Without data, the page asks the service that it was loaded from. Writing the page needs
no model, so a service can show it while models are loading.
"""

import base64
import hashlib
import json
from collections.abc import Mapping
from importlib.resources import files

from markupsafe import Markup

from korbert.messages import Message, in_language, language, translate, translations
from korbert.pipelines.reports.drawing import fill_template

# Files of templates/look/, in the order in which they run.
_SCRIPTS = ("data", "attention", "strips", "matrix", "neurons", "guesses", "texts", "prediction", "page")


def page(data: Mapping[str, object] | None, browser: str | None = None) -> str:
    """A self-contained HTML page, without external scripts, fonts or styles. data: None for the page of a service.

    browser: the Accept-Language of the browser that asks for the page, if any.

    Text never becomes markup: `<` is escaped in the JSON, and only the page's own script may run.
    """
    lang = language(browser)
    folder = files("korbert.pipelines.reports") / "templates" / "look"
    script = "\n".join((folder / f"{name}.js").read_text(encoding="utf-8") for name in _SCRIPTS)
    digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    return fill_template(
        "look.html",
        lang=lang,
        _=lambda text: in_language(Message(text), lang),
        words=_encode_json(translations("page", lang)),
        data=_encode_json(translate(data, lang)),
        script=Markup(script),
        digest=Markup(digest),
    )


def _encode_json(value: object) -> Markup:
    encoded = json.dumps(value, separators=(",", ":"))  # ASCII: surrogates are escaped
    for char in "<>&":
        encoded = encoded.replace(char, f"\\u{ord(char):04x}")
    return Markup(encoded)
