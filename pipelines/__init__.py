"""Stages that leave artifacts, joined from corpus and korbert, and the command that runs them.

The way of `korbert run RECIPE`:

1. `cli.py` and `commands/` read the command line; `recipes.py` reads the recipe, `runtime.py` holds the rest.
2. `pipeline.py` compares the recipe with the artifacts that are there; `sources.py` finds and hashes source files.
3. `runner.py` makes what is not fresh, in the order of `stages/table.py`; `artifacts.py` reads and writes records.
4. Stages do the work: a module of `stages/` each, or a task of `tasks.py`, which `classification.py` or `reading.py`
   runs. `experiments.py` searches rates and seeds.
5. `reports/` draws the pages, `summary.py` prints tables.

Other commands: `template.py` (new), `previewing.py` (clean --preview), `predicting.py` with `lines.py` and `records.py`
(predict), `tokenizing.py` (tokenize), `submission.py` (submit, score).
"""
