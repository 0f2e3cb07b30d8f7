"""The pipeline: its stages, their artifacts, and the `korbert` command.

What `korbert run RECIPE` does:

1. cli.py and commands/ read the command line; recipes/ reads the recipe, artifacts/runtime.py holds the other options.
2. artifacts/: pipeline.py compares the recipe with what exists, sources.py finds and hashes source files, store.py
   handles records.
3. runs/runner.py runs the stages that are not fresh, in the order of stages/table.py.
4. Each stage is a module of stages/; all tasks have one, stages/finetuning.py. experiments/ searches rates and seeds
   and compares what came out.
5. reports/ writes the HTML pages and prints tables.

Other commands: inference/ (predict, embed, tokenize, questions), planning/ (plan), service/ (serve), submission/.
From Python: library.py (`korbert.finetune`, `run`, `pretrain`, `evaluate`, `compare`); results.py is what these return.
"""
