"""Text made uniform, once: NFC, no invisible characters, plain spaces and line feeds. Words and jamo stay."""

import re
from unicodedata import normalize as unicode_normalize

from corpus.settings import NormalizeSettings

__all__ = ["normalize"]

_LINE_ENDS = re.compile("\r\n?|[\x85\u2028\u2029\x0b\x0c]")
_CONTROL = re.compile("[\x00-\x08\x0e-\x1f\x7f-\x84\x86-\x9f]")
_HANGUL = "\u1100-\u11ff\u3130-\u318f\ua960-\ua97f\uac00-\ud7ff"
# Joiners mean something inside emoji and in Indic and Persian words; beside Hangul they are dirt.
_JOINER = re.compile("[\u200c\u200d]")  # far faster to look for than those beside Hangul
_JOINERS_BESIDE_HANGUL = re.compile(f"(?<=[{_HANGUL}])[\u200c\u200d]+|[\u200c\u200d]+(?=[{_HANGUL}])")
_ZERO_WIDTH = re.compile("[\u00ad\u200b\u2060\ufeff]")
_SPACES = re.compile(r" [^\S\n]+|[^\S\n ][^\S\n]*")  # all but a single plain one
_SPACES_AT_LINE_ENDS = re.compile(" ?\n ?")
_BLANK_LINES = re.compile("\n{3,}")


def normalize(text: str, settings: NormalizeSettings) -> str:
    """The text in NFC with what the settings take out taken out. Doing it twice changes nothing more.

    Never NFKC, which would turn ㅋ into another character and full-width letters into narrow ones.
    """
    text = unicode_normalize("NFC", text)
    text = _LINE_ENDS.sub("\n", text)
    if settings.control:
        text = _CONTROL.sub("", text)
    if settings.zero_width:
        text = _ZERO_WIDTH.sub("", text)
        if _JOINER.search(text):
            text = _JOINERS_BESIDE_HANGUL.sub("", text)
    if settings.spaces:
        text = _SPACES.sub(" ", text)
        text = _SPACES_AT_LINE_ENDS.sub("\n", text)
        text = _BLANK_LINES.sub("\n\n", text).strip()
    return unicode_normalize("NFC", text)
