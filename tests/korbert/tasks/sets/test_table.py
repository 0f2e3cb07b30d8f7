import subprocess
import sys

import pytest

from korbert.records import FORMS
from korbert.tasks.files import ROLES
from korbert.tasks.kinds import KINDS
from korbert.tasks.sets import SETS, known_set, listing


@pytest.mark.parametrize("known", SETS.values(), ids=list(SETS))
def test_each_entry_is_whole(known):
    assert known_set(known.name) is known
    assert all((known.metrics, known.url.startswith("https://"), known.about, known.licence))
    assert not known.best or 50 < float(known.best.split(" (")[0]) < 100
    assert known.kind in KINDS
    assert known.size["train"] > max(size for part, size in known.size.items() if part != "train")
    for files in known.files:
        assert set(files.parts) == set(known.size)
        assert set(files.columns) <= ROLES.keys()
        assert files.form in FORMS
        assert not any(folder.startswith("/") or ".." in folder for folder in files.folders)


def test_the_listing_loads_nothing_heavy():
    lines = {line["name"]: line for line in listing()}
    assert list(lines) == list(SETS)
    assert lines["kobest-copa"] == {
        "name": "kobest-copa",
        "kind": "multiple-choice",
        "about": "KoBEST COPA: more plausible cause or effect, of two",
        "rows": "3,076 / 500 / 1,000",
        "metric": "macro_f1",
        "best": "-",
        "licence": "CC BY-SA 4.0",
        "where": "https://github.com/SKT-LSL/KoBEST_datarepo",
    }
    assert lines["korsts"]["best"] == "85.53 (KoELECTRA base v3, test; monologg/KoELECTRA README)"
    assert [lines[name]["rows"] for name in ("klue-tc", "question-pair")] == ["45,678 / 9,107 / -", "6,888 / - / 688"]
    heavy = {"torch", "pandas", "pyarrow", "numpy", "pydantic", "datasets"}
    code = f"from korbert.tasks.sets import listing; listing(); import sys; assert not {heavy} & sys.modules.keys()"
    subprocess.run([sys.executable, "-c", code], check=True)
