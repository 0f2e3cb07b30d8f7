"""Normalizes text to NFC: control and invisible characters and HTML go, white space and long repetitions are reduced.

Words stay as they are. Of repeated characters, only jamo and punctuation are shortened.
"""

import html
import re
from collections.abc import Callable, Iterable, Iterator
from unicodedata import normalize as unicode_normalize

from korbert.corpus.corpus_settings import NormalizeSettings
from korbert.corpus.documents import group_by_size
from korbert.personal_data import APART

_LINE_ENDS = re.compile("\r\n?|[\x85\u2028\u2029\x0b\x0c]")
_CONTROL = re.compile("[\x00-\x08\x0e-\x1f\x7f-\x84\x86-\x9f]")
_HANGUL = "\u1100-\u11ff\u3130-\u318f\ua960-\ua97f\uac00-\ud7ff"
# Joiners have a meaning inside emoji and in Indic and Persian words; next to Hangul they are noise.
_JOINERS_BESIDE_HANGUL = re.compile(f"(?<=[{_HANGUL}])[\u200c\u200d]+|[\u200c\u200d]+(?=[{_HANGUL}])")
_ZERO_WIDTH = re.compile("[\u00ad\u200b\u200e\u200f\u202a-\u202e\u2060-\u2064\u2066-\u206f\ufeff\ufff9-\ufffb]")
_CONTROL_OR_INVISIBLE = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\u00ad\u200b-\u200f\u2028-\u202e\u2060-\u206f\ufeff\ufff9-\ufffb]"
)  # any of these
_SPACES = re.compile(r" [^\S\n]+|[^\S\n ][^\S\n]*")  # all but a single plain space
_SPACES_AT_LINE_ENDS = re.compile(" \n ?|\n ")
_BLANK_LINES = re.compile("\n{3,}")
_AMPERSANDS = re.compile("&(?:amp;)+", re.IGNORECASE)  # escaped several times
_ENTITY = re.compile("&(?:#[0-9]{1,7}|#[xX][0-9a-fA-F]{1,6}|[a-zA-Z][a-zA-Z0-9]{1,31});")
_VALUE = rf"\"[^\"<>{APART}]*\"|'[^'<>{APART}]*'|[^\s\"'<>{APART}]+"
# "a <b and c> d" holds a tag, too; "a <b + c> d" in a formula does not.
_ATTRIBUTES = rf"(?:\s+[a-zA-Z:-]+(?:\s*=\s*(?:{_VALUE}))?)*\s*/?>"
_BLOCK_TAG = re.compile(
    f"</?(?:p|br|hr|div|li|ul|ol|dl|dt|dd|table|tbody|thead|tr|h[1-6]|pre|blockquote|center|form){_ATTRIBUTES}",
    re.IGNORECASE,
)
_INLINE_TAG = re.compile(
    "</?(?:b|i|u|s|a|em|strong|font|span|img|td|th|sup|sub|small|big|strike|code|tt|label|input|button|script|style"
    f"|iframe|embed|object|param|noscript|nobr|wbr|math|ref|references|nowiki|gallery|chem){_ATTRIBUTES}",
    re.IGNORECASE,
)
_REPEATED = "[ㄱ-ㅎㅏ-ㅣ!-/:-@\\[-`{-~…·。、！？～♡♥★☆]"  # compatibility jamo and punctuation

_BATCH_CHARS = 1 << 12  # larger batches leave the processor's caches
_MAX_ROUNDS = 16


def normalize(text: str, settings: NormalizeSettings) -> str:
    """Returns the text in NFC, normalized according to the settings. Idempotent unless max_repeats is 1.

    Never NFKC, which would turn ㅋ into another character and full-width letters into narrow ones.
    """
    for _ in range(_MAX_ROUNDS):
        text = unicode_normalize("NFC", text)
        if _CONTROL_OR_INVISIBLE.search(text):
            text = _LINE_ENDS.sub("\n", text)
            if settings.control:
                text = _CONTROL.sub("", text)
            if settings.zero_width:
                text = _JOINERS_BESIDE_HANGUL.sub("", _ZERO_WIDTH.sub("", text))
        with_html = text
        if settings.html and "&" in text:
            text = _ENTITY.sub(lambda match: html.unescape(match[0]), _AMPERSANDS.sub("&", text))
        if settings.html and "<" in text:
            text = _INLINE_TAG.sub("", _BLOCK_TAG.sub("\n", text))
        changed = text != with_html
        if settings.spaces:
            text = _SPACES.sub(" ", text)
            if " \n" in text or "\n " in text:
                text = _SPACES_AT_LINE_ENDS.sub("\n", text)
            if "\n\n\n" in text:
                text = _BLANK_LINES.sub("\n\n", text)
            text = text.strip()
        if settings.max_repeats:
            too_many = f"({_REPEATED})\\1{{{settings.max_repeats},}}"
            text = re.sub(too_many, lambda match: match[1] * settings.max_repeats, text)
        if not changed:  # otherwise repeat: an entity may expand to anything
            break
    return unicode_normalize("NFC", text)


def normalize_many(texts: Iterable[str], settings: NormalizeSettings) -> Iterator[str]:
    """normalize() of each text, in order; short texts in batches, which is several times as fast."""
    normalized = in_joined_batches(texts, _BATCH_CHARS, lambda text: normalize(text, settings))
    return (text.strip() for text in normalized) if settings.spaces else normalized


def in_joined_batches(texts: Iterable[str], chars: int, function: Callable[[str], str]) -> Iterator[str]:
    """function() of each text, in order, called with batches of about `chars` characters joined by APART.

    function: leaves APART alone and matches nothing across it.
    """
    for batch in group_by_size(texts, chars, len):
        joined = APART.join(batch)
        yield from function(joined).split(APART) if joined.count(APART) == len(batch) - 1 else map(function, batch)
