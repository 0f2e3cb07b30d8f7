"""Sets that belong to no collection, and two of GLUE by its format."""

from collections.abc import Mapping

from korbert.tasks.sets import changes
from korbert.tasks.sets.known import Files, KnownSet, Part, Published

__all__ = ["ENGLISH", "KOREAN", "OWN_STAGES"]

OWN_STAGES = (
    KnownSet(
        "nsmc",
        "NSMC",
        "classification",
        "is a film review positive?",
        ("accuracy",),
        "https://github.com/e9t/nsmc",
        "CC0 1.0",
        {"train": 150_000, "test": 50_000},
        Published(91.97, "KcELECTRA v2022", "test", "Beomi/KcELECTRA README"),
    ),
    KnownSet(
        "korquad",
        "KorQuAD 1.0",
        "reading",
        "the answer to a question, in a paragraph of Wikipedia",
        ("exact_match", "f1"),
        "https://korquad.github.io/category/1.0_ENG.html",
        "CC BY-ND 2.0 KR",
        {"train": 60_407, "valid": 5_774},
        Published(87.08, "KoBigBird", "dev", "monologg/KoBigBird README"),
        (
            Files(
                ("korquad1", "KorQuAD"),
                {"train": ("KorQuAD_v1.0_train.json",), "valid": ("KorQuAD_v1.0_dev.json",)},
                {"context": "context", "question": "question", "answers": "answers", "id": "id"},
                "json",
            ),
        ),
    ),
)

KOREAN = (
    KnownSet(
        "korsts",
        "KorSTS",
        "regression",
        "semantic similarity of two sentences, 0 to 5",
        ("spearman", "pearson"),
        "https://github.com/kakaobrain/kor-nlu-datasets",
        "CC BY-SA 4.0",
        {"train": 5_749, "valid": 1_500, "test": 1_379},
        Published(85.53, "KoELECTRA base v3", "test", "monologg/KoELECTRA README"),
        (
            Files(
                ("korsts", "kor-nlu-datasets/KorSTS"),
                {"train": ("sts-train.tsv",), "valid": ("sts-dev.tsv",), "test": ("sts-test.tsv",)},
                {"text": "sentence1", "pair": "sentence2", "score": "score"},
                "tsv-plain",
            ),
        ),
    ),
    KnownSet(
        "kornli",
        "KorNLI",
        "classification",
        "does the second sentence follow from the first?",
        ("accuracy", "macro_f1"),
        "https://github.com/kakaobrain/kor-nlu-datasets",
        "CC BY-SA 4.0",
        {"train": 942_854, "valid": 2_490, "test": 5_010},
        Published(83.11, "LMKor electra-kor-base", "test", "kiyoungkim1/LMkor README"),
        (
            Files(
                ("kornli", "kor-nlu-datasets/KorNLI"),
                {
                    "train": ("multinli.train.ko.tsv", "snli_1.0_train.ko.tsv"),
                    "valid": ("xnli.dev.ko.tsv",),
                    "test": ("xnli.test.ko.tsv",),
                },
                {"text": "sentence1", "pair": "sentence2", "label": "gold_label"},
                "tsv-plain",
            ),
        ),
    ),
    KnownSet(
        "question-pair",
        "Question pairs",
        "classification",
        "do two questions mean the same? 0: they do, 1: they do not",
        ("accuracy", "macro_f1"),
        "https://github.com/songys/Question_pair",
        "MIT",
        {"train": 6_888, "test": 688},
        Published(95.78, "KcELECTRA base", "test", "Beomi/KcELECTRA README"),
        (
            Files(
                ("question_pair", "Question_pair"),
                {"train": ("kor_pair_train.csv",), "test": ("kor_Pair_test.csv",)},
                {"text": "question1", "pair": "question2", "label": "is_duplicate"},
                "csv",
            ),
        ),
    ),
    KnownSet(
        "hate-speech",
        "Korean hate speech",
        "classification",
        "is a comment on news hateful, offensive, or neither?",
        ("macro_f1", "accuracy"),
        "https://github.com/kocohub/korean-hate-speech",
        "CC BY-SA 4.0",
        {"train": 7_896, "valid": 471},
        Published(74.50, "KR-ELECTRA", "", "snunlp/KR-ELECTRA README"),
        (
            Files(
                ("hate_speech", "korean-hate-speech/labeled"),
                {"train": ("train.tsv",), "valid": ("dev.tsv",)},
                {"text": "comments", "label": "hate"},
                "tsv-quoted",
            ),
        ),
    ),
    KnownSet(
        "ud-kaist",
        "UD Korean Kaist",
        "tagging",
        "the part of speech of each word",
        ("accuracy",),
        "https://github.com/UniversalDependencies/UD_Korean-Kaist",
        "CC BY-SA 4.0",
        {"train": 23_010, "valid": 2_066, "test": 2_287},
        None,
        (
            Files(
                ("ud_kaist", "UD_Korean-Kaist"),
                {
                    "train": ("ko_kaist-ud-train.conllu",),
                    "valid": ("ko_kaist-ud-dev.conllu",),
                    "test": ("ko_kaist-ud-test.conllu",),
                },
                {"tokens": "tokens", "tags": "upos", "spaces": "misc", "id": "id"},
                "conllu",
                changes.words,
            ),
        ),
    ),
)


def _glue(
    name: str,
    title: str,
    about: str,
    metrics: tuple[str, ...],
    size: Mapping[Part, int],
    columns: Mapping[str, str],
    score: float,
) -> KnownSet:
    """A set of GLUE as its TSV files; the labels of its test sets are not published."""
    parts: dict[Part, tuple[str, ...]] = {"train": ("train.tsv",), "valid": ("dev.tsv",)}
    files = Files((f"glue_data/{title}",), parts, columns, "tsv-plain")
    best = Published(score, "BERT-base", "test", "Devlin et al. 2019, table 1")
    url, licence = "https://gluebenchmark.com/tasks", "not stated in the files; see the page"
    return KnownSet(name, title, "classification", about, metrics, url, licence, size, best, (files,))


ENGLISH = (
    _glue(
        "mrpc",
        "MRPC",
        "do two English sentences mean the same?",
        ("f1", "accuracy"),
        {"train": 3_668, "valid": 408},
        {"text": "#1 String", "pair": "#2 String", "label": "Quality"},
        88.9,
    ),
    _glue(
        "sst-2",
        "SST-2",
        "is an English film review positive?",
        ("accuracy",),
        {"train": 67_349, "valid": 872},
        {"text": "sentence", "label": "label"},
        93.5,
    ),
)
