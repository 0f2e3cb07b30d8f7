"""Personal data in text: found by its form and its check digit, if there is one, and replaced by a tag of its kind.

Covered: e-mail addresses; phone numbers of persons and offices (company lines such as 1588-0000, which look like years,
only after a word such as 전화 or 문의); resident registration numbers with a valid date and check digit, or named as
such in the text, since those issued after October 2020 have no check digit; card numbers by Luhn's rule; bank accounts
next to the name of a bank or a word for account.
"""

import re
from bisect import bisect
from calendar import monthrange
from collections import Counter
from collections.abc import Callable, Container, Iterable
from typing import Any

APART = "\ufdd0"
"""Separates texts that are processed as one: a noncharacter, absent from text. No personal data contains it."""

MASKS = {
    "email": "<이메일>",
    "resident_number": "<주민등록번호>",
    "card": "<카드번호>",
    "phone": "<전화번호>",
    "account": "<계좌번호>",
}

_LATEST_BIRTH = 2040  # later years are not births: 880123-4… begins a bar code
_WIDE = str.maketrans("０１２３４５６７８９－．（）＠＋　", "0123456789-.()@+ ")
_WIDE_CHAR = re.compile("[０-９－．（）＠＋　]")

_DASH = "\\-\u2010-\u2015\u2212\u3161"  # ㅡ is typed for a dash
_OPTIONAL_SEPARATOR = rf"[ .·/){_DASH}]{{0,3}}"
_SEPARATOR = rf"[ .·/){_DASH}]{{1,3}}"
_START = rf"(?<![0-9])(?<![0-9][.{_DASH}])"  # not after a digit, nor after a digit and a dash
_END = rf"(?![0-9])(?![.{_DASH}][0-9])"

_AT = r"(?: ?@ ?| ?[\[(] ?(?:at|앳|골뱅이) ?[\])] ?| ?골뱅이 ?)"
_DOT = r"(?:\.| ?[\[(] ?(?:dot|닷|점) ?[\])] ?)"
_EMAIL = re.compile(
    rf"(?<![A-Za-z0-9._%+-])[A-Za-z0-9_](?:[A-Za-z0-9._%+-]{{0,62}}[A-Za-z0-9_-])?{_AT}"
    rf"(?:[A-Za-z0-9](?:[A-Za-z0-9-]{{0,61}}[A-Za-z0-9])?{_DOT}){{1,4}}[A-Za-z]{{2,12}}(?![A-Za-z0-9])",
    re.IGNORECASE,
)
_SPELLED_AT = re.compile(r"[Tt] ?[\])]|앳 ?[\])]|골뱅이")
_LONG_NUMBER = re.compile(rf"[0-9][0-9 .·/(){_DASH}]{{6,}}[0-9]")  # numbers are only looked for in these

_RESIDENT = re.compile(rf"{_START}(\d\d)(\d\d)(\d\d) ?[{_DASH}]? ?([1-8])(\d{{6}}){_END}", re.ASCII)
_RESIDENT_SAID = re.compile(rf"(?:주민|외국인)[^0-9\n{APART}]{{0,15}}$")
_CARD = re.compile(
    rf"{_START}(?:\d{{4}}(?:[ {_DASH}]?\d{{4}}){{3}}|\d{{4}}[ {_DASH}]?\d{{6}}[ {_DASH}]?\d{{5}}){_END}", re.ASCII
)

_COUNTRY = rf"(?:\+|\b00) ?82{_OPTIONAL_SEPARATOR}(?:\(0\))?{_OPTIONAL_SEPARATOR}"
_AREA = r"(?:2|3[1-3]|4[1-4]|5[1-5]|6[1-4]|70|80|50[2-8]?)"
_CALL = r"(?:전화|연락|문의|휴대폰|핸드폰|팩스|☎|☏|\b(?:tel|fax|phone|hp|mobile|[th])\b\.?)"
_PHONE = re.compile(
    rf"{_START}(?:"
    rf"(?:{_COUNTRY}0?|\(?0)1[016789]{_OPTIONAL_SEPARATOR}\d{{3,4}}{_OPTIONAL_SEPARATOR}\d{{4}}"
    rf"|(?:{_COUNTRY}0?|\(?0){_AREA}{_SEPARATOR}\d{{3,4}}{_SEPARATOR}\d{{4}}"
    rf"|0{_AREA}\d{{7,8}}"
    rf"|\d{{3,4}}{_SEPARATOR}\d{{4}}"
    rf"){_END}",
    re.ASCII | re.IGNORECASE,
)
_CALLED = re.compile(rf"{_CALL}(?:처|번호)? ?[:.)\]]? ?$", re.ASCII | re.IGNORECASE)
_CERTAIN_PHONE = re.compile(rf"(?:{_COUNTRY}|\(?0(?:1[016789]|{_AREA}{_SEPARATOR}))", re.ASCII)

_BANK = (
    r"(?:(?:국민|신한|우리|하나|기업|제일|씨티|대구|부산|경남|광주|전북|제주|산업|외환|카카오|토스|케이|아이엠|한국)"
    r" ?(?:은행|뱅크)|농협|카뱅|토뱅|새마을금고|우체국|신협|수협)"
)
_ACCOUNT_WORD = rf"(?:{_BANK}|계좌|예금주|입금|송금)"
_ACCOUNT = re.compile(rf"{_START}(?:\d{{2,6}}(?:[ {_DASH}]\d{{1,8}}){{1,4}}|\d{{10,16}}){_END}", re.ASCII)
_ACCOUNT_BEFORE = re.compile(rf"{_ACCOUNT_WORD}[^0-9\n{APART}]{{0,15}}$", re.IGNORECASE)
_ACCOUNT_AFTER = re.compile(rf" ?[(,:]? ?(?:{_BANK}|예금주|계좌)", re.IGNORECASE)
_TEXT_ROLES = ("text", "pair")  # keys of a row
_AROUND = 3  # characters of a match around its digits and their separators: (, +
_NEAR = 30  # characters before a number that may say what it is


def mask_text(text: str, kinds: Container[str] = MASKS) -> tuple[str, Counter[str]]:
    """The text with personal data of the given kinds replaced by their MASKS, and the number of masks by kind."""
    counts: Counter[str] = Counter()
    pieces = []
    position = 0
    for start, end, kind in spans(text):
        if kind in kinds:
            pieces += [text[position:start], MASKS[kind]]
            position = end
            counts[kind] += 1
    return "".join([*pieces, text[position:]]) if pieces else text, counts


def mask_rows(rows: Iterable[dict[str, Any]]) -> Counter[str]:
    """Masks all kinds of personal data in the texts of rows, in place. Returns the number of masks by kind."""
    counts: Counter[str] = Counter()
    for row in rows:
        for name in _TEXT_ROLES:
            if row.get(name):
                row[name], found = mask_text(row[name])
                counts += found
    return counts


def spans(text: str) -> list[tuple[int, int, str]]:
    """(start, end, kind) of all personal data, in order, without overlaps."""
    folded = text.translate(_WIDE) if _WIDE_CHAR.search(text) else text
    entities: list[tuple[int, int, str]] = []
    if "@" in folded or _SPELLED_AT.search(folded):
        entities += [(*match.span(), "email") for match in _EMAIL.finditer(folded)]
    for number in _LONG_NUMBER.finditer(folded):
        for kind, (pattern, is_valid) in _NUMBERS.items():
            for match in pattern.finditer(folded, max(0, number.start() - _AROUND), number.end() + _AROUND):
                start, end = match.span()
                if not is_valid(match, folded[max(0, start - _NEAR) : start]):
                    continue
                i = bisect(entities, (start, end, ""))
                if (i == 0 or entities[i - 1][1] <= start) and (i == len(entities) or entities[i][0] >= end):
                    entities.insert(i, (start, end, kind))
    return entities


def is_resident_number(match: re.Match[str], before: str) -> bool:
    """Whether date and check digit are valid, or the date alone if the text calls it a resident number."""
    year, month, day, century_digit = (int(match[group]) for group in (1, 2, 3, 4))
    year += 2000 if century_digit in (3, 4, 7, 8) else 1900
    if not (1 <= month <= 12 and 1 <= day <= monthrange(year, month)[1] and year <= _LATEST_BIRTH):
        return False
    digits = _digits(match)
    weighted = zip(digits, (2, 3, 4, 5, 6, 7, 8, 9, 2, 3, 4, 5), strict=False)
    remainder = sum(digit * weight for digit, weight in weighted) % 11
    check_digits = {(11 - remainder) % 10} | ({(13 - remainder) % 10} if century_digit >= 5 else set())
    return digits[-1] in check_digits or _RESIDENT_SAID.search(before) is not None


def is_card(match: re.Match[str], _: str) -> bool:
    """Whether the digits follow Luhn's rule and begin as those of a card network do."""
    digits = _digits(match)
    if digits[0] not in (2, 3, 4, 5, 6, 9) or len(set(digits)) < 3:
        return False
    doubled = [digit if i % 2 else sum(divmod(2 * digit, 10)) for i, digit in enumerate(digits[::-1], 1)]
    return sum(doubled) % 10 == 0


def is_phone(match: re.Match[str], before: str) -> bool:
    return _CERTAIN_PHONE.match(match[0]) is not None or _CALLED.search(before) is not None


def is_account(match: re.Match[str], before: str) -> bool:
    is_named = _ACCOUNT_BEFORE.search(before) or _ACCOUNT_AFTER.match(match.string, match.end())
    return 10 <= len(_digits(match)) <= 16 and is_named is not None


def _digits(match: re.Match[str]) -> list[int]:
    return [int(char) for char in match[0] if char in "0123456789"]


# Kind -> its pattern, and a function that says whether a match, given the text before it, is of this kind.
_NUMBERS: dict[str, tuple[re.Pattern[str], Callable[[re.Match[str], str], bool]]] = {
    "resident_number": (_RESIDENT, is_resident_number),
    "card": (_CARD, is_card),
    "phone": (_PHONE, is_phone),
    "account": (_ACCOUNT, is_account),
}
