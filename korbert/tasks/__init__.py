"""What a pretrained encoder is put to: gaps to fill, labels for texts, answers out of contexts; and their scores.

Its modules nsmc, korquad and korquad_score stand for the two Korean tasks: `from korbert.tasks import korquad_score`.
"""

from typing import TYPE_CHECKING

from korbert._lazy import attach

if TYPE_CHECKING:
    from korbert.tasks.classification import Classifier
    from korbert.tasks.filling import Filler
    from korbert.tasks.reading import Reader
    from korbert.tasks.reading_settings import KorquadSettings, ReadingSettings
    from korbert.tasks.settings import ClassificationSettings, NsmcSettings

__all__ = [
    "ClassificationSettings",
    "Classifier",
    "Filler",
    "KorquadSettings",
    "NsmcSettings",
    "Reader",
    "ReadingSettings",
]

__getattr__ = attach(
    __name__,
    {
        "ClassificationSettings": "settings",
        "Classifier": "classification",
        "Filler": "filling",
        "KorquadSettings": "reading_settings",
        "NsmcSettings": "settings",
        "Reader": "reading",
        "ReadingSettings": "reading_settings",
    },
)
