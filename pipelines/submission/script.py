"""Answers the questions of a KorQuAD 1.0 file.

    python predict.py INPUT.json OUTPUT.json

OUTPUT gets one JSON object, {question id: answer}. The model, its tokenizer and korbert are next to this file;
requirements.txt lists the libraries. Nothing is downloaded.
"""

import sys
from pathlib import Path

sys.dont_write_bytecode = True  # this folder stays as it is


def main() -> int:
    """Returns the exit code: 0 if every question was answered, else that of the error."""
    if len(sys.argv) != 3:
        print(__doc__, file=sys.stderr)
        return 2
    import korbert
    from korbert.errors import KorbertError
    from korbert.system.durable import write_json
    from korbert.tasks import korquad

    try:
        rows = korquad.read(Path(sys.argv[1]))
        model = korbert.load(Path(__file__).resolve().parent / "model")
        answers = model.answer([row["question"] for row in rows], [row["context"] for row in rows])
        write_json(Path(sys.argv[2]), {row["id"]: answer.answer for row, answer in zip(rows, answers, strict=True)})
    except KorbertError as error:
        print(f"predict.py: {error}", file=sys.stderr)
        return error.exit_code
    return 0


if __name__ == "__main__":
    sys.exit(main())
