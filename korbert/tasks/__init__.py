"""What a pretrained encoder is put to: gaps to fill, labels for texts, answers out of contexts; and their scores.

Its packages nsmc and korquad stand for the two Korean tasks: `from korbert.tasks import korquad`.
"""

from typing import TYPE_CHECKING

from korbert._lazy import attach

if TYPE_CHECKING:
    from korbert.tasks.classification import Classifier
    from korbert.tasks.classification_settings import ClassificationSettings
    from korbert.tasks.filling import Filler
    from korbert.tasks.korquad.settings import KorquadSettings
    from korbert.tasks.nsmc.settings import NsmcSettings
    from korbert.tasks.reading import Reader
    from korbert.tasks.reading_settings import ReadingSettings

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
        "ClassificationSettings": "classification_settings",
        "Classifier": "classification",
        "Filler": "filling",
        "KorquadSettings": "korquad.settings",
        "NsmcSettings": "nsmc.settings",
        "Reader": "reading",
        "ReadingSettings": "reading_settings",
    },
)
