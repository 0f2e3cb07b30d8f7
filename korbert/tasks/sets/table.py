"""All known sets by name, and the lines that `korbert tasks` prints about them."""

import difflib
from collections.abc import Mapping

from korbert.errors import SettingsError
from korbert.tasks.sets.klue import KLUE
from korbert.tasks.sets.known import PARTS, KnownSet
from korbert.tasks.sets.kobest import KOBEST
from korbert.tasks.sets.single import ENGLISH, KOREAN, OWN_STAGES

__all__ = ["SETS", "known_set", "listing"]

SETS: Mapping[str, KnownSet] = {known.name: known for known in (*OWN_STAGES, *KLUE, *KOBEST, *KOREAN, *ENGLISH)}


def known_set(name: str) -> KnownSet:
    """Raises SettingsError for an unknown name, with the closest match."""
    if name not in SETS:
        near = difflib.get_close_matches(name.lower().replace("_", "-"), SETS, 1)
        hint = f"did you mean {near[0]}?" if near else f"known are {', '.join(SETS)}"
        raise SettingsError(f"no data set {name!r}: {hint}")
    return SETS[name]


def listing() -> list[dict[str, str]]:
    """One line per set: name, kind, about, rows (of train, valid and test), metric, best, licence, where.

    "-" stands for a part without published labels and for an unknown best score.
    """
    return [
        {
            "name": known.name,
            "kind": known.kind,
            "about": f"{known.title}: {known.about}",
            "rows": " / ".join(f"{known.size[part]:,}" if part in known.size else "-" for part in PARTS),
            "metric": known.metrics[0],
            "best": str(known.best) if known.best else "-",
            "licence": known.licence,
            "where": known.url,
        }
        for known in SETS.values()
    ]
