"""Text to pieces and back to characters: Kiwi's morphemes, a vocabulary learned from them, and ids."""

from typing import TYPE_CHECKING

from korbert._lazy import attach

if TYPE_CHECKING:
    from korbert.tokenization.analyzer import Analyzer
    from korbert.tokenization.encoding import Encoding, pad_batch, span_to_pieces
    from korbert.tokenization.learning import learn
    from korbert.tokenization.morphemes import Analysis
    from korbert.tokenization.pieces import Pieces
    from korbert.tokenization.settings import AnalyzerOptions, VocabularySettings
    from korbert.tokenization.tokenizer import Tokenizer
    from korbert.tokenization.vocabulary import marked

__all__ = [
    "Analysis",
    "Analyzer",
    "AnalyzerOptions",
    "Encoding",
    "Pieces",
    "Tokenizer",
    "VocabularySettings",
    "learn",
    "marked",
    "pad_batch",
    "span_to_pieces",
]

__getattr__ = attach(
    __name__,
    {
        "Analysis": "morphemes",
        "Analyzer": "analyzer",
        "AnalyzerOptions": "settings",
        "Encoding": "encoding",
        "Pieces": "pieces",
        "Tokenizer": "tokenizer",
        "VocabularySettings": "settings",
        "learn": "learning",
        "marked": "vocabulary",
        "pad_batch": "encoding",
        "span_to_pieces": "encoding",
    },
)
