"""Answer the questions of a KorQuAD 1.0 file.

    python predict.py INPUT.json OUTPUT.json

OUTPUT gets one JSON object, {question id: answer}. Model, tokenizer and the code of korbert lie beside this file; the
libraries that it needs are in requirements.txt. Nothing is fetched from anywhere.
"""

import sys
from pathlib import Path

HERE = Path(__file__).resolve().parent


def main() -> int:
    """The exit code: 0 when every question is answered, else what the error says."""
    if len(sys.argv) != 3:
        print(__doc__, file=sys.stderr)
        return 2
    sys.path[:0] = sorted(str(wheel) for wheel in HERE.glob("korbert-*.whl"))  # this code, whatever is installed
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
