"""The pipeline: its stages, their artifacts, and the `korbert` command.

What `korbert run RECIPE` does:

1. `cli.py` and `commands/` read the command line; `recipes.py` reads the recipe, `runtime.py` holds the other options.
2. `pipeline.py` compares the recipe with existing artifacts; `sources.py` finds and hashes source files.
3. `runner.py` runs the stages that are not fresh, in the order of `stages/table.py`; `artifacts.py` handles
   records.
4. Each stage is a module of `stages/`, or a task of `tasks.py`, run by `classification.py` or `reading.py`.
   `experiments.py` searches learning rates and seeds.
5. `reports/` writes the HTML pages, `summary.py` prints tables.

Other commands: `template.py` (new), `previewing.py` (clean --preview), `predicting.py` with `lines.py` and `records.py`
(predict), `tokenizing.py` (tokenize), `submission.py` (submit, score).
"""
