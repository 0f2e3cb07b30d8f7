"""Korean particles whose form depends on the sound before them: 파일이, 문서가; 3으로, 1로."""

import re

_PAIRS = {  # as translators write them: (after a final consonant, after a vowel)
    "이(가)": ("이", "가"),
    "을(를)": ("을", "를"),
    "은(는)": ("은", "는"),
    "과(와)": ("과", "와"),
    "(으)로": ("으로", "로"),
    "(이)": ("이", ""),
}
_FINAL_DIGITS = frozenset("013678")  # 영, 일, 삼, 육, 칠, 팔; of powers of ten, which end in 0: 십, 백, 천, 만
_FINAL_CAPITALS = frozenset("LMNR")  # 엘, 엠, 엔, 알
_FINAL_ENDINGS = ("l", "m", "n", "ng")  # of words in Latin letters: model 모델, token 토큰
_SILENT = re.compile(r"[^0-9A-Za-z가-힣]+$")  # quotes and brackets after a name are not read
_PARTICLE = re.compile("|".join(map(re.escape, _PAIRS)))


def with_particle(before: str, after: str) -> str:
    """The two texts joined; if the second begins with a particle in both forms, only the right one is left.

    A closing quote or bracket may stand between them. Where the sound is unknown, both forms stay: ☆을(를).

    Examples:
        >>> with_particle("문서 3", "을(를) 읽었습니다.")
        '문서 3을 읽었습니다.'
    """
    quote_match = re.match(r"[^\w\s(]{0,2}", after)
    quote = quote_match[0] if quote_match else ""
    particle = _PARTICLE.match(after, len(quote))
    final = _final_sound(before)
    if particle is None or final is None:
        return before + after
    after_consonant, after_vowel = _PAIRS[particle[0]]
    takes_vowel_form = not final or (particle[0] == "(으)로" and final == "ㄹ")
    return before + quote + (after_vowel if takes_vowel_form else after_consonant) + after[particle.end() :]


def _final_sound(text: str) -> str | None:
    """What the last syllable ends in: "" for a vowel, "ㄹ", "other" for another consonant; None if unknown."""
    text = _SILENT.sub("", text) if not text.endswith("%") else "퍼센트"
    last = text[-1:]
    if "가" <= last <= "힣":
        number = (ord(last) - ord("가")) % 28
        return "" if number == 0 else "ㄹ" if number == 8 else "other"
    if last.isdigit():
        return "ㄹ" if last in "178" else "other" if last in _FINAL_DIGITS else ""
    if not last:
        return None
    if text[-2:].isupper() or len(text) == 1:
        return "ㄹ" if last.upper() in "LR" else "other" if last.upper() in _FINAL_CAPITALS else ""
    if not text.lower().endswith(_FINAL_ENDINGS):
        return ""
    return "ㄹ" if last.lower() == "l" else "other"
