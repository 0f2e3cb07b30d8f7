"""Generates questions with answers from plain text, to warm up a reader. No labels are needed.

How a paragraph is processed (`making.py`):

1. `sentences.py`: splits a sentence, without brackets, into morphemes and predicates.
2. `topics.py`: gives a sentence without a subject the topic of the previous one.
3. `answers.py`, with `numbers.py`: finds dates, numbers, names and noun phrases, and question words.
4. `drafts.py`: selects the part of the sentence to ask about; `asking.py` rejects bad questions and writes the others.

`tables.py`, of `words.toml`: endings, particles, question words by verb, counters, nouns, synonyms.
`generate.py` runs all of this on files, in parallel.
"""
