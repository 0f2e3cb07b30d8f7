"""Which column holds a role: the one that is named, or the one of a usual name; never one of two."""

import pytest

from korbert.errors import CorpusError, SettingsError
from korbert.tasks.files import ROLES, columns_of
from korbert.tasks.files.columns import choose_columns

TEXT, LABEL, PAIR, CHOICES = ROLES["text"], ROLES["label"], ROLES["pair"], ROLES["choices"]


@pytest.mark.parametrize(
    ("roles", "present", "given", "chosen"),
    [
        ([TEXT, LABEL], ["ID", "Text", "Label"], {}, {"text": ("Text",), "label": ("Label",)}),
        ([TEXT, LABEL], ["번호", "문장", "감정"], {}, {"text": ("문장",), "label": ("감정",)}),
        ([TEXT, LABEL], [" TEXT ", "gold label"], {}, {"text": (" TEXT ",), "label": ("gold label",)}),
        ([TEXT], ["text", "document"], {"text": "document"}, {"text": ("document",)}),
        ([TEXT, PAIR], ["sentence1", "sentence2"], {}, {"text": ("sentence1",), "pair": ("sentence2",)}),
        ([CHOICES], ["choice2", "choice1", "choice3"], {}, {"choices": ("choice1", "choice2", "choice3")}),
        ([CHOICES], ["ending_0", "ending_1"], {}, {"choices": ("ending_0", "ending_1")}),
        ([CHOICES], ["ID", "1", "2"], {}, {"choices": ("1", "2")}),
        ([CHOICES], ["a", "b"], {"choices": ("b", "a")}, {"choices": ("b", "a")}),
        ([TEXT, ROLES["id"]], ["text"], {}, {"text": ("text",)}),
        ([LABEL, TEXT], ["label", "text"], {"label": "text", "text": "text"}, {"label": ("text",), "text": ("text",)}),
    ],
)
def test_columns_are_found(roles, present, given, chosen):
    assert choose_columns(roles, present, given, "a.csv") == chosen


@pytest.mark.parametrize(
    ("roles", "present", "given", "said"),
    [
        ([TEXT], ["a", "", "c"], {}, r"a.csv: no column for text \(text, .*\) among a, \(no name\), c: say which"),
        ([TEXT, LABEL], [], {}, r"no column for text .* and label .* among none"),
        ([TEXT], ["b\udcff"], {}, r"among b\\udcff: say"),
        ([TEXT], ["문장들", "b"], {"text": "문장"}, r"no column '문장' for text among .*: did you mean 문장들\?"),
        ([TEXT], ["a", "b"], {"text": "zzz"}, r"no column 'zzz' for text among a, b: name one of these"),
        ([TEXT], ["a", "a"], {"text": "a"}, r"2 columns are called 'a', the one for text: give them names"),
        ([TEXT], ["text", "Text"], {}, r"column 'text' or 'Text' may hold text: say which one it is"),
        ([TEXT, ROLES["question"]], ["question", "sentence"], {"text": "q"}, r"no column 'q' for text among question"),
        ([LABEL, ROLES["labels"]], ["label"], {}, r"column 'label' may hold label or labels \(of label\): say which"),
        ([CHOICES], ["choice1", "choice3"], {}, r"no column for choices"),
    ],
)
def test_what_is_not_clear_is_refused_with_the_columns(roles, present, given, said):
    with pytest.raises(CorpusError, match=said):
        choose_columns(roles, present, given, "a.csv")


def test_columns_that_may_be_meant_and_unknown_roles():
    assert columns_of(LABEL, ["Label", "text", "감정"]) == ("Label", "감정")
    with pytest.raises(SettingsError, match="'lable' cannot be named for this kind of task, which has text, label"):
        choose_columns([TEXT, LABEL], ["text", "label"], {"lable": "label"}, "a.csv")
