"""Labels on characters, words or spans of a text: named entities, parts of speech.

1. bio.py: spans as BIO tags, and back.
2. labels.py: character spans and word labels as labels of pieces, and back; what pieces cannot express.
3. examples.py: windows over long texts, rows of pieces with their targets.
4. tagger.py: the loss, scores of many rows, and labels for new texts.
5. viterbi.py: the most probable legal tag sequence.
6. dictionary.py: the baseline.
"""

from typing import TYPE_CHECKING

from korbert._lazy import attach

if TYPE_CHECKING:
    from korbert.tasks.tagging.bio import LabelledSpan, bio_labels, is_bio, read_bio, repaired, write_bio
    from korbert.tasks.tagging.dictionary import learn_dictionary, look_up
    from korbert.tasks.tagging.examples import TaggedExamples, encode_tags, make_examples
    from korbert.tasks.tagging.labels import (
        join_words,
        piece_tags,
        spans_of_pieces,
        spans_of_words,
        unreachable_spans,
        unreachable_words,
        word_tags,
    )
    from korbert.tasks.tagging.tagger import (
        TaggedSpan,
        Tagger,
        best_labels,
        best_spans,
        log_probabilities,
        tagging_loss,
    )
    from korbert.tasks.tagging.viterbi import Transitions, best_path

__all__ = [
    "LabelledSpan",
    "TaggedExamples",
    "TaggedSpan",
    "Tagger",
    "Transitions",
    "best_labels",
    "best_path",
    "best_spans",
    "bio_labels",
    "encode_tags",
    "is_bio",
    "join_words",
    "learn_dictionary",
    "log_probabilities",
    "look_up",
    "make_examples",
    "piece_tags",
    "read_bio",
    "repaired",
    "spans_of_pieces",
    "spans_of_words",
    "tagging_loss",
    "unreachable_spans",
    "unreachable_words",
    "word_tags",
    "write_bio",
]

__getattr__ = attach(
    __name__,
    {
        "LabelledSpan": "bio",
        "TaggedExamples": "examples",
        "TaggedSpan": "tagger",
        "Tagger": "tagger",
        "Transitions": "viterbi",
        "best_labels": "tagger",
        "best_path": "viterbi",
        "best_spans": "tagger",
        "bio_labels": "bio",
        "encode_tags": "examples",
        "is_bio": "bio",
        "join_words": "labels",
        "learn_dictionary": "dictionary",
        "log_probabilities": "tagger",
        "look_up": "dictionary",
        "make_examples": "examples",
        "piece_tags": "labels",
        "read_bio": "bio",
        "repaired": "bio",
        "spans_of_pieces": "labels",
        "spans_of_words": "labels",
        "tagging_loss": "tagger",
        "unreachable_spans": "labels",
        "unreachable_words": "labels",
        "word_tags": "labels",
        "write_bio": "bio",
    },
)
