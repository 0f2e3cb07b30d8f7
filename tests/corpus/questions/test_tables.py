import re
from pathlib import Path

from korbert.corpus import questions
from korbert.corpus.questions.tables import TAGS, WORDS


def test_every_table_is_used_and_every_used_table_exists():
    code = "".join(path.read_text("utf-8") for path in Path(questions.__file__).parent.glob("*.py"))
    assert set(re.findall(r"WORDS\[['\"](\w+)", code)) == set(WORDS)
    assert set(re.findall(r"TAGS\[['\"](\w+)", code)) == set(TAGS)
