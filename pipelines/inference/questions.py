"""Generates questions from text as training data, in KorQuAD format."""

import json
from collections import Counter
from collections.abc import Iterable, Iterator
from contextlib import closing
from dataclasses import replace
from hashlib import blake2b
from itertools import groupby
from pathlib import Path
from typing import IO, Literal

from korbert.corpus.corpus_settings import SourceSettings
from korbert.corpus.questions.generate import ParagraphQuestions, QuestionSettings, generate, is_part
from korbert.corpus.readers import find_files
from korbert.errors import CorpusError, SettingsError
from korbert.messages import argument
from korbert.system import check_output, claim, remove, write_atomically

_GROUPS = {  # prefix of a count -> what it counts
    "question_": "questions by question word",
    "document_": "documents left out",
    "paragraph_": "paragraphs left out",
    "sentence_": "sentences without a question",
    "refused_": "answers without a question (a sentence may have several)",
}


def write_questions(
    corpus: str, output: Path, *, per_paragraph: int, seed: int, text: str, documents: Literal["line", "blank", "file"],
    count: int | None, workers: int,
) -> Counter[str]:  # fmt: skip
    """Writes questions on the text of a file, folder or glob, in corpus order; returns the counts of `generate`.

    output: a .json file, in KorQuAD format. per_paragraph, seed: as in QuestionSettings. text, documents: as in
    SourceSettings. count: stop after this many questions. Of the counts, `written` is the number of questions in the
    file; `questions` may be larger, by the rest of the last part. Memory does not grow with the corpus. Raises
    SettingsError for another extension or an output that cannot be written, CorpusError if there is no file or no
    question. Finished parts are kept in OUTPUT.partial until the output is complete: after an interruption, the same
    call resumes.
    """
    if output.suffix != ".json":
        raise SettingsError(
            "{output}: extension is {suffix}: use .json (KorQuAD format)",
            output=output,
            suffix=output.suffix or "missing",
        )
    files = find_files(corpus, Path())
    if not files:
        raise CorpusError(
            "{corpus}: no such file, and no file in it: name a file, a folder, or a glob in quotes", corpus=corpus
        )
    check_output(output, *files)
    settings = QuestionSettings(per_paragraph=per_paragraph, seed=seed)
    source = SourceSettings(name="corpus", path=corpus, id="", text=text, documents=documents)
    counts: Counter[str] = Counter()
    partial = claim(output.with_name(f"{output.name}.partial"), is_part)

    def write(file: IO[bytes]) -> None:
        made = generate(settings, source, files, workers=workers, counts=counts, partial=partial)
        with closing(made):
            file.writelines(text.encode() for text in _squad(_first(made, count, counts)))
        if counts["written"]:
            return
        remove(partial)
        faults = sum(number for name, number in counts.items() if name.startswith("document_"))
        if faults and faults == counts["documents"]:
            raise CorpusError(
                "{corpus}: none of {faults:,} records has text in the field {text!r}: name the field with {option}",
                corpus=corpus, faults=faults, text=source.text, option=argument("text"),
            )  # fmt: skip
        raise CorpusError(
            "{corpus}: no questions from {paragraphs:,} paragraphs, {short:,} of them too short: give running text; if "
            "documents of a text file span several lines, add {option} blank or file",
            corpus=corpus, paragraphs=counts["paragraphs"], short=counts["paragraph_too_short"],
            option=argument("documents"),
        )  # fmt: skip

    write_atomically(output, write)
    remove(partial)
    return counts


def _first(made: Iterable[ParagraphQuestions], count: int | None, counts: Counter[str]) -> Iterator[ParagraphQuestions]:
    """Yields the first `count` questions (None: all), and counts them as `written`."""
    for generated in made:
        remaining = None if count is None else count - counts["written"]
        questions = generated.questions[:remaining]
        counts["written"] += len(questions)
        yield replace(generated, questions=questions)
        if counts["written"] == count:
            return


def _squad(made: Iterable[ParagraphQuestions]) -> Iterator[str]:
    """Yields the text of a KorQuAD file, with one article (a document) per line."""
    yield '{"version": "korbert questions", "data": ['
    for index, (place, document) in enumerate(groupby(made, key=lambda generated: generated.place)):
        paragraphs = []
        for generated in document:
            # Ids stay unique when files are merged.
            digest = blake2b(f"{generated.place}\n{generated.paragraph}".encode(), digest_size=10).hexdigest()
            entries = [
                {
                    "id": f"{digest}-{number}",
                    "question": question.question,
                    "answers": [{"text": question.answer, "answer_start": question.start}],
                }
                for number, question in enumerate(generated.questions)
            ]
            paragraphs.append({"context": generated.paragraph, "qas": entries})
        article = json.dumps({"title": place, "paragraphs": paragraphs}, ensure_ascii=False)
        yield f"{',' if index else ''}\n{article}"
    yield "\n]}\n"


def describe_counts(output: Path, counts: Counter[str]) -> Iterator[str]:
    """Yields lines for the terminal: questions written, text read, and what was left out and why."""
    yield f"{counts['written']:,} questions in {output}"
    sizes = ", ".join(f"{counts[name]:,} {name}" for name in ("documents", "paragraphs", "sentences"))
    resumed = f"; {counts['resumed']:,} of {counts['parts']:,} parts are from an earlier run"
    yield f"from {sizes}{resumed if counts['resumed'] else ''}"
    if beyond := counts["questions"] - counts["written"]:
        yield f"{beyond:,} more from the last part were left out because of --count"
    for beginning, what in _GROUPS.items():
        numbers = {name: number for name, number in counts.most_common() if name.startswith(beginning)}
        if numbers:
            yield f"{what}: " + ", ".join(f"{name[len(beginning) :]} {number:,}" for name, number in numbers.items())
