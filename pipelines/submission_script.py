"""Answers the questions of a KorQuAD 1.0 file.

    python predict.py INPUT.json OUTPUT.json

OUTPUT gets one JSON object, {question id: answer}. Model, tokenizer and the code of korbert lie beside this file;
requirements.txt lists the libraries. Nothing is downloaded.
"""

import sys
from pathlib import Path

HERE = Path(__file__).resolve().parent


def main() -> int:
    """Returns the exit code: 0 if every question was answered, else that of the error."""
    if len(sys.argv) != 3:
        print(__doc__, file=sys.stderr)
        return 2
    sys.path[:0] = sorted(str(wheel) for wheel in HERE.glob("korbert-*.whl"))  # before any installed version
    from korbert.errors import KorbertError
    from pipelines.submission import submit

    try:
        submit(HERE / "model", Path(sys.argv[1]), Path(sys.argv[2]))
    except KorbertError as error:
        print(f"predict.py: {error}", file=sys.stderr)
        return error.exit_code
    return 0


if __name__ == "__main__":
    sys.exit(main())
