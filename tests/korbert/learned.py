"""Tokenizers of each mark, learned from the same reviews, and what odd texts are made of."""

import json
import unicodedata
from collections import Counter
from collections.abc import Iterable
from pathlib import Path

from korbert.tokenization import Analyzer, Tokenizer, VocabularySettings, learn, marked

MARKS = ("none", "eojeol", "morpheme")
FRAGMENTS = [
    *"가나다한간했은 \t\r\n.,!?()[]<>'\"~-_@#1２aZéＡㅋㅠᆫ\u1100\u1161\u11a8漢龘\uf900𠀀𪚥▁▅",
    *"\u00a0\u3000\u200b\u200c\u200d\ufeff\u2060\u00ad\ufe0f\u0301\u0323\u0958\u2800\x00\x01\x1c\x85\u2028\uffff",
    *"😀👩🚀🏽👍🇰🇷🏴❤🧔♂\U000e0067\U000e007f\ud800\udc00\U0010ffff",
    *("[MASK]", "[SEP]", "[PAD]", "[RESERVED3]", "<0x41>", "<unk>", "<이메일>", "<전화번호>"),
    *("나는 ", "학교에서 ", "방문한다", "이걸 ", "예뻤다. ", "그래서\n", "의사다", "맛 있다", "갔엌ㅋㅋ", "좋앗어요"),
    *("대한민국에서 ", "쀍쀍", "코르버트는 ", "갓생을 ", "GPT4모델", "1,000원", "https://a.kr/b?c=1", "2020년作"),
    *("👩\u200d🚀", "👍🏽", "학\u200b교에", unicodedata.normalize("NFD", "학교에서 갔다"), "e\u0301\u0323"),
]


def learned(analyzer: Analyzer, sample: Path, words: tuple[str, ...], more: Iterable[str] = ()) -> dict[str, Tokenizer]:
    """Mark -> a tokenizer with these whole words, from 300 reviews and `more` forms, which all use that analyzer."""
    lines = (sample / "reviews.jsonl").read_text(encoding="utf-8").splitlines()[:300]
    analyses = list(analyzer.analyze_many(json.loads(line)["text"] for line in lines))
    tokenizers = {}
    for mark in MARKS:
        counts = Counter({marked(form, True, mark): 40 for form in more})
        for analysis in analyses:
            eojeols = zip(analysis.eojeols, [-1, *analysis.eojeols], strict=False)
            initial = (eojeol != before for eojeol, before in eojeols)
            counts.update(marked(form, begins, mark) for form, begins in zip(analysis.forms, initial, strict=True))
        settings = VocabularySettings.model_validate({"size": 1_500, "mark": mark, "words": words})
        model = learn(counts.items(), settings)
        tokenizers[mark] = Tokenizer(model, settings, analyzer.options, analyzer.versions)
        tokenizers[mark].analyzer = analyzer
    return tokenizers
