"""Reasons to drop a document: each filter measures many texts at once, and a limit of the recipe says which go.

Visible characters are those that are not white space. Hangul syllables are U+AC00 to U+D7A3; lone jamo (ㅋㅋ) are none.
Limits began at those that FineWeb2 publishes for Korean (configs of huggingface/fineweb-2, kor_Hang), where it does,
and were settled by reading what they dropped and kept (benchmarks/RESULTS.md).
"""

import re
from collections.abc import Callable, Iterable, Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from corpus.cleaning.features import HAN, KANA, OTHER, SYMBOL, Features, Floats, Ints
from corpus.settings import FilterSettings

__all__ = ["FILTERS", "Filter", "drop_reasons", "too_short"]


# Lines that belong to a page and not to its text. A notice of rights marks its line; of a menu's words it takes two
# different ones, in a line that does not end as sentences do.
_RIGHTS = re.compile(
    r"무단 ?(?:전재|복제|배포)|재배포 ?(?:를 )?금지|저작권자 ?[ⓒ©(<]|[Aa]ll [Rr]ights [Rr]eserved"
    r"|[Cc]opyright ?(?:©|ⓒ|\([Cc]\)|[0-9])|쿠키(?:를 사용|를 수집| 정책| 설정)|자바스크립트를 (?:사용|활성|지원|켜)"
)
_FRAME = re.compile(
    r"개인정보 ?(?:처리|취급)방침|이용약관|청소년 ?보호 ?정책|(?:본문|메뉴) ?바로가기|사이트맵"
    r"|회원 ?가입|로그인|로그아웃|(?:아이디|비밀번호) ?찾기|고객 ?센터"
    r"|이전 ?글|다음 ?글|목록(?:으로|보기)|맨 ?위로|기사 ?제보|구독 ?신청|마이 ?페이지"
    r"|(?:카카오톡|페이스북|트위터|밴드) ?공유|공유하기|인쇄하기|스크랩|(?:글쓴이|작성자|작성일|등록일) ?:|첨부파일"
    r"|조회 ?수? ?:? ?[0-9]|추천 ?수? ?:? ?[0-9]|댓글 ?:? ?[0-9]|홈 ?>|HOME ?>"
)
_BEGINNINGS = (  # the first two characters of each of these, one after another
    "무단재배저작alAlcoCo쿠키자바개인이용청소본문메뉴사이회원로그아이비밀고객이전다음목록맨위맨 기사구독마이"
    "카카페이트위밴드공유인쇄스크글쓴작성등록첨부조회추천댓글홈>홈 HO"
)
_LONGEST_FRAME_LINE = 150  # visible characters: a longer line is prose about such things


class Filter(NamedTuple):
    """A reason, the measure behind it, and the settings' limit for it: below, or above it, a text is dropped.

    least: of what a text must have for the measure to mean something, and how much of it.
    """

    reason: str
    measure: Callable[[Features, FilterSettings], Floats | Ints]
    limit: Callable[[FilterSettings], float]
    shown: str
    below: bool = False
    least: Callable[[Features, FilterSettings], np.ndarray] | None = None

    def drops(self, features: Features, settings: FilterSettings) -> tuple[np.ndarray, Floats | Ints]:
        """(D,) which texts go, and (D,) the measure."""
        measure = self.measure(features, settings)
        limit = self.limit(settings)
        found = measure < limit if self.below else measure > limit
        return (found if self.least is None else found & self.least(features, settings)), measure


def _has_lines(features: Features, settings: FilterSettings) -> np.ndarray:
    return features.count(features.lines) >= settings.layout_min_lines


def _too_long_words(features: Features, settings: FilterSettings) -> Floats:
    return features.visible / np.maximum(features.count(features.words), 1)


def _top_ngrams(features: Features, settings: FilterSettings) -> Floats:
    """The largest of the shares of 2-, 3- and 4-grams, each to its limit."""
    return _largest(features.top_ngram_share, zip(range(2, 5), settings.max_top_ngram_shares, strict=True))


def _repeated_ngrams(features: Features, settings: FilterSettings) -> Floats:
    """The largest of the shares of 5- to 10-grams, each to its limit."""
    return _largest(features.repeated_ngram_share, zip(range(5, 11), settings.max_repeated_ngram_shares, strict=True))


def _largest(share: Callable[[int], Floats], limits: Iterable[tuple[int, float]]) -> Floats:
    shares: Floats = np.max([share(size) / max(limit, 1e-9) for size, limit in limits], axis=0)
    return shares


def _boilerplate(features: Features, settings: FilterSettings) -> Floats:
    rights, frame = _page_words(features)
    marked = features.count_in_lines(rights) >= 1
    marked |= (features.count_in_lines(_different(features, frame)) >= 2) & ~features.closed_lines
    marked &= features.line_visible <= _LONGEST_FRAME_LINE
    return features.line_char_share(marked)


def _different(features: Features, places: Ints) -> Ints:
    """The places less those where a word stands that stood in their line before: by its first two characters."""
    lines = np.searchsorted(features.lines.starts, places, side="right").astype(np.uint64)
    words = _two(features.codes[places], features.codes[places + 1])
    first = np.unique((lines << np.uint64(16)) | words, return_index=True)[1]
    found: Ints = places[np.sort(first)]
    return found


def _two(first: NDArray[np.uint32], second: NDArray[np.uint32]) -> NDArray[np.uint32]:
    """A number below 2^16 for each two characters; others may have the same."""
    found: NDArray[np.uint32] = (first * np.uint32(40503) + second) & np.uint32(0xFFFF)
    return found


_MAY_BEGIN = np.zeros(1 << 16, bool)
_MAY_BEGIN[_two(*np.array([ord(char) for char in _BEGINNINGS], np.uint32).reshape(-1, 2).T)] = True


def _page_words(features: Features) -> tuple[Ints, Ints]:
    """Where notices of rights and words of menus begin. Most places are ruled out by two characters, all at once."""
    places = np.flatnonzero(_MAY_BEGIN[_two(features.codes[:-1], features.codes[1:])])
    found: tuple[list[int], list[int]] = ([], [])
    ends = [0, 0]
    for place in places.tolist():
        for number, pattern in enumerate((_RIGHTS, _FRAME)):
            match = pattern.match(features.joined, place) if place >= ends[number] else None
            if match is not None:
                found[number].append(place)
                ends[number] = match.end()
    return np.array(found[0], np.int64), np.array(found[1], np.int64)


FILTERS = (
    Filter(
        "too_short", lambda texts, _: texts.visible, lambda limits: limits.min_chars, "{:.0f} visible characters", True
    ),
    Filter(
        "too_little_hangul",
        lambda texts, _: texts.hangul_share,
        lambda limits: limits.min_hangul_share,
        "Hangul share {:.2f}",
        below=True,
    ),
    Filter(
        "too_many_symbols",
        lambda texts, _: texts.share_of(SYMBOL),
        lambda limits: limits.max_symbol_share,
        "{:.2f} of the visible characters are symbols",
    ),
    Filter(
        "mixed_languages",
        lambda texts, _: texts.share_of(HAN, KANA, OTHER),
        lambda limits: limits.max_other_script_share,
        "{:.2f} of the visible characters are of scripts other than Hangul and Latin",
    ),
    Filter(
        "too_long_words",
        _too_long_words,
        lambda limits: limits.max_word_chars,
        "words have {:.1f} characters on average",
    ),
    Filter(
        "repeated_lines",
        lambda texts, _: texts.line_char_share(texts.repeated_lines),
        lambda limits: limits.max_repeated_line_share,
        "{:.2f} of the characters are in lines that stood before",
    ),
    Filter(
        "repeated_words",
        _top_ngrams,
        lambda _: 1.0,
        "one run of 2 to 4 words takes {:.2f} of its limit",
    ),
    Filter(
        "repeated_passages",
        _repeated_ngrams,
        lambda _: 1.0,
        "repeated runs of 5 to 10 words take {:.2f} of their limit",
    ),
    Filter(
        "boilerplate",
        _boilerplate,
        lambda limits: limits.max_boilerplate_share,
        "{:.2f} of the characters are in lines of a page's frame",
    ),
    Filter(
        "list_like",
        lambda texts, _: texts.line_share(texts.closed_lines),
        lambda limits: limits.min_closed_line_share,
        "{:.2f} of the lines end as sentences do",
        below=True,
        least=_has_lines,
    ),
    Filter(
        "bullets",
        lambda texts, _: texts.line_share(texts.bullet_lines),
        lambda limits: limits.max_bullet_share,
        "{:.2f} of the lines begin with a bullet",
        least=_has_lines,
    ),
)


def drop_reasons(texts: Sequence[str], features: Features, settings: FilterSettings) -> list[tuple[str, str] | None]:
    """For each text, in order, the first reason to drop it with the measure behind it for people; None to keep it.

    features: of the texts, as `batches` gives them, and of their beginnings where they are very long.
    """
    found: list[tuple[str, str] | None] = [
        ("too_long", f"{len(text):,} characters") if len(text) > settings.max_chars else None for text in texts
    ]
    for one in FILTERS:
        dropped, measure = one.drops(features, settings)
        for place in np.flatnonzero(dropped):
            found[place] = found[place] or (one.reason, one.shown.format(measure[place]))
    return found


def too_short(text: str, settings: FilterSettings) -> bool:
    """Whether a text has too few visible characters: what is asked again once lines have been taken out of it."""
    return len("".join(text.split())) < settings.min_chars
