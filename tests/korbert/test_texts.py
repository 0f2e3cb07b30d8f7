"""One text or many, as users give them to models."""

import pandas as pd
import pytest

from korbert.errors import SettingsError
from korbert.texts import as_texts


@pytest.mark.parametrize(
    ("value", "texts"),
    [
        ("하나", (["하나"], True)),
        (["하나", "둘"], (["하나", "둘"], False)),
        (pd.Series(["하나"]), (["하나"], False)),
        (pd.DataFrame({"id": [1], "text": ["하나"]}), (["하나"], False)),
    ],
)
def test_texts(value, texts):
    assert as_texts(value, "texts") == texts


@pytest.mark.parametrize(
    ("value", "said"),
    [
        (pd.DataFrame({"문장": ["하나"], "감정": ["긍정"]}), "texts is a table with the columns 문장, 감정: give one"),
        (pd.DataFrame({"text": ["하나", None]}), r"texts\[1\] is (None|float nan): give only strings"),
        (b"abc", "texts is bytes"),
        (None, "texts is None: give a string, or a list of strings"),
    ],
)
def test_what_is_no_text_is_refused(value, said):
    with pytest.raises(SettingsError, match=said):
        as_texts(value, "texts")
