"""The page of `korbert check --html`: what may be wrong with a file, and the most doubtful labels."""

from pathlib import Path

from korbert.messages import Message
from korbert.pipelines.experiments.checking import Checked
from korbert.pipelines.reports.drawing import Section, TableElement, beginning, write

_SHOWN = 50


def write_page(path: Path, name: str, found: Checked) -> Path:
    """Writes the page and returns its path. name: the name of the checked file."""
    doubtful = TableElement(
        "",
        (Message("line"), Message("text"), Message("label"), Message("likelier"), Message("probability of the label")),
        [
            (str(row.place.number), beginning(*row.texts), row.label, row.likelier, f"{row.probability:.3f}")
            for row in found.doubtful[:_SHOWN]
        ],
        "rkkkr",
    )
    facts = TableElement("", (Message("finding"),), [(fact,) for fact in found.facts], "l")
    return write(
        path,
        "checking.html",
        about=Message("{output}: {count:,} rows with findings", output=name, count=len(found.rows)),
        sections=(
            Section(Message("What was found"), [facts]),
            Section(Message("Doubtful labels"), [doubtful] if found.doubtful else []),
        ),
    )
