"""Filters: each computes a measure of many texts at once and drops those beyond a limit of the recipe.

Visible characters are those other than white space. Hangul syllables are U+AC00 to U+D7A3, without lone jamo (ㅋㅋ).
Limits started from those that FineWeb2 publishes for Korean (configs of huggingface/fineweb-2, kor_Hang), and were set
by reading the documents that they dropped and kept (benchmarks/RESULTS.md).
"""

import re
from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from korbert.corpus.cleaning.features import HAN, KANA, OTHER, SYMBOL, Features, FloatArray
from korbert.corpus.cleaning.hashing import BoolArray, IntArray
from korbert.corpus.corpus_settings import FilterSettings

# Boilerplate: lines that belong to the frame of a page. A copyright notice marks its line; words of menus do if two
# different ones occur in a line that does not end as sentences do.
RIGHTS = re.compile(
    r"무단 ?(?:전재|복제|배포)|재배포 ?(?:를 )?금지|저작권자 ?[ⓒ©(<]|[Aa]ll [Rr]ights [Rr]eserved"
    r"|[Cc]opyright ?(?:©|ⓒ|\([Cc]\)|[0-9])|쿠키(?:를 사용|를 수집| 정책| 설정)|자바스크립트를 (?:사용|활성|지원|켜)"
)
FRAME = re.compile(
    r"개인정보 ?(?:처리|취급)방침|이용약관|청소년 ?보호 ?정책|(?:본문|메뉴) ?바로가기|사이트맵"
    r"|회원 ?가입|로그인|로그아웃|(?:아이디|비밀번호) ?찾기|고객 ?센터"
    r"|이전 ?글|다음 ?글|목록(?:으로|보기)|맨 ?위로|기사 ?제보|구독 ?신청|마이 ?페이지"
    r"|(?:카카오톡|페이스북|트위터|밴드) ?공유|공유하기|인쇄하기|스크랩|(?:글쓴이|작성자|작성일|등록일) ?:|첨부파일"
    r"|조회 ?수? ?:? ?[0-9]|추천 ?수? ?:? ?[0-9]|댓글 ?:? ?[0-9]|홈 ?>|HOME ?>"
)
_BEGINNINGS = (  # the first two characters of every alternative of the two patterns, concatenated
    "무단재배저작alAlcoCo쿠키자바개인이용청소본문메뉴사이회원로그아이비밀고객이전다음목록맨위맨 기사구독마이"
    "카카페이트위밴드공유인쇄스크글쓴작성등록첨부조회추천댓글홈>홈 HO"
)
_LONGEST_FRAME_LINE = 150  # visible characters; a longer line is prose about such things


class Filter(NamedTuple):
    """A reason to drop a text: its measure is above the limit, or below a limit whose name begins with min_.

    measure: returns (D,), one number per text. form: format of the measure. limit: name of the setting, or a number.
    needs_lines: whether only texts with enough lines are checked.
    """

    reason: str
    form: str
    measure: Callable[[Features, FilterSettings], FloatArray | IntArray]
    limit: str | float
    needs_lines: bool = False

    def drops(self, features: Features, settings: FilterSettings) -> tuple[BoolArray, FloatArray | IntArray]:
        """(D,) which texts to drop, and (D,) the measure."""
        measure = self.measure(features, settings)
        limit = getattr(settings, self.limit) if isinstance(self.limit, str) else self.limit
        is_dropped = measure < limit if str(self.limit).startswith("min_") else measure > limit
        if self.needs_lines:
            is_dropped &= features.count(features.lines) >= settings.layout_min_lines
        return is_dropped, measure


def largest_ratio(share: Callable[[int], FloatArray], limits: Sequence[float], first: int) -> FloatArray:
    """Returns (D,) the largest ratio of the share of n-grams to its limit. limits: from n-grams of `first` words on."""
    ratios: FloatArray = np.max([share(n) / max(limit, 1e-9) for n, limit in enumerate(limits, first)], axis=0)
    return ratios


def pair_code(first: NDArray[np.uint32], second: NDArray[np.uint32]) -> NDArray[np.uint32]:
    """A hash below 2^16 of each two characters."""
    return (first * np.uint32(40503) + second) & np.uint32(0xFFFF)


_MAY_BEGIN = np.zeros(1 << 16, bool)
_MAY_BEGIN[pair_code(*np.array([ord(char) for char in _BEGINNINGS], np.uint32).reshape(-1, 2).T)] = True


def page_words(features: Features) -> tuple[IntArray, IntArray]:
    """Returns where copyright notices and where words of menus begin, as indices of `features.joined`.

    The first two characters of the patterns rule out most positions at once.
    """
    pairs = pair_code(features.codes[:-1], features.codes[1:])
    beginnings: tuple[list[int], list[int]] = ([], [])
    ends = [0, 0]
    for position in np.flatnonzero(_MAY_BEGIN[pairs]).tolist():
        for number, pattern in enumerate((RIGHTS, FRAME)):
            match = pattern.match(features.joined, position) if position >= ends[number] else None
            if match is not None:
                beginnings[number].append(position)
                ends[number] = match.end()
    return np.array(beginnings[0], np.int64), np.array(beginnings[1], np.int64)


def boilerplate(features: Features, _: FilterSettings) -> FloatArray:
    """Share of the visible characters in lines of boilerplate."""
    notices, menu_words = page_words(features)
    # Of equal menu words in one line only the first counts; two characters identify a word.
    lines = np.searchsorted(features.lines.starts, menu_words, side="right").astype(np.uint64)
    words = pair_code(features.codes[menu_words], features.codes[menu_words + 1])
    first = np.unique((lines << np.uint64(16)) | words, return_index=True)[1]
    distinct_words = menu_words[np.sort(first)]
    is_boilerplate = features.count_in_lines(notices) >= 1
    is_boilerplate |= (features.count_in_lines(distinct_words) >= 2) & ~features.closed_lines
    is_boilerplate &= features.line_visible <= _LONGEST_FRAME_LINE
    return features.line_char_share(is_boilerplate)


FILTERS = (
    Filter("too_short", ".0f", lambda texts, _: texts.visible, "min_chars"),
    Filter("too_little_hangul", ".2f", lambda texts, _: texts.hangul_share, "min_hangul_share"),
    Filter("too_many_symbols", ".2f",
           lambda texts, _: texts.share_of(SYMBOL), "max_symbol_share"),
    Filter("mixed_languages", ".2f",
           lambda texts, _: texts.share_of(HAN, KANA, OTHER), "max_other_script_share"),
    Filter("too_long_words", ".1f",
           lambda texts, _: texts.visible / np.maximum(texts.count(texts.words), 1), "max_word_chars"),
    Filter("repeated_lines", ".2f",
           lambda texts, _: texts.line_char_share(texts.repeated_lines), "max_repeated_line_share"),
    Filter("repeated_words", ".2f",
           lambda texts, limits: largest_ratio(texts.top_ngram_share, limits.max_top_ngram_shares, 2), 1.0),
    Filter("repeated_passages", ".2f",
           lambda texts, limits: largest_ratio(texts.repeated_ngram_share, limits.max_repeated_ngram_shares, 5), 1.0),
    Filter("boilerplate", ".2f", boilerplate,
           "max_boilerplate_share"),
    Filter("list_like", ".2f",
           lambda texts, _: texts.line_share(texts.closed_lines), "min_closed_line_share", needs_lines=True),
    Filter("bullets", ".2f",
           lambda texts, _: texts.line_share(texts.bullet_lines), "max_bullet_share", needs_lines=True),
)  # fmt: skip


def drop_reasons(texts: Sequence[str], features: Features, settings: FilterSettings) -> list[tuple[str, str] | None]:
    """The first reason to drop each text, in order, with the measure; None to keep it.

    features: of the texts, as `batches` gives them.
    """
    reasons: list[tuple[str, str] | None] = [
        ("too_long", str(len(text))) if len(text) > settings.max_chars else None for text in texts
    ]
    for text_filter in FILTERS:
        dropped, measure = text_filter.drops(features, settings)
        for index in np.flatnonzero(dropped):
            reasons[index] = reasons[index] or (text_filter.reason, format(measure[index], text_filter.form))
    return reasons


def too_short(text: str, settings: FilterSettings) -> bool:
    """Whether a text has too few visible characters, checked again once lines have been removed from it."""
    return len("".join(text.split())) < settings.min_chars
