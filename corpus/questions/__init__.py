"""Questions with answers made from text alone, for a reader to warm up on. No labels are needed.

The way of a paragraph (`making.py`):

1. `sentences.py`: a sentence without its brackets, in morphemes, with its predicates.
2. `topics.py`: a sentence without subject gets the topic of the one before.
3. `answers.py`, with `numbers.py` and `phrases.py`: its dates, numbers, names and noun phrases, and what asks for each.
4. `drafts.py`: what of the sentence becomes the question; `checks.py`: what it must not be; `asking.py` and
   `definitions.py`: the question.

`nouns.py` and `verbs.py` are tables: endings, particles, question words by verb, counters, nouns, synonyms.
`generate.py` runs all of this on files, in parallel.
"""
