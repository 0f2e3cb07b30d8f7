"""One text or many, as users give them to models."""

import pandas as pd
import pytest

from korbert.embedder import as_texts
from korbert.errors import SettingsError


def test_texts():
    assert as_texts("하나", "texts") == (["하나"], True)
    assert as_texts(["하나", "둘"], "texts") == (["하나", "둘"], False)
    for table in (pd.Series(["하나"]), pd.DataFrame({"id": [1], "text": ["하나"]})):
        assert as_texts(table, "texts") == (["하나"], False)


def test_what_is_no_text_is_refused():
    for value, said in (
        (pd.DataFrame({"문장": ["하나"], "감정": ["긍정"]}), "texts is a table with the columns 문장, 감정: give one"),
        (pd.DataFrame({"text": ["하나", None]}), r"texts\[1\] is (None|float nan): give only strings"),
        (b"abc", "texts is bytes"),
        (None, "texts is None: give a string, or a list of strings"),
    ):
        with pytest.raises(SettingsError, match=said):
            as_texts(value, "texts")
