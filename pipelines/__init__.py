"""The pipeline: its stages, their artifacts, and the `korbert` command.

What `korbert run RECIPE` does:

1. cli.py and commands/ read the command line; recipes/ reads the recipe, Runtime (artifacts/stage.py) holds
   the other options.
2. runs/: pipeline.py compares the recipe with the artifacts, whose records artifacts/store.py handles; sources.py
   finds and hashes source files.
3. runs/runner.py runs the stages that are not fresh, in the order of stages/table.py.
4. Each stage is a module of stages/; all tasks have one, stages/finetuning.py. experiments/ searches rates and seeds
   and compares the results.
5. reports/ writes the HTML pages and prints tables.

The folders form layers, and each imports only from lower layers (tests/test_layering.py), lowest first: artifacts,
inference; experiments, submission; stages; recipes; runs; planning, reports; results, service; commands, library; cli.

Other commands: inference/ (predict, embed, tokenize, questions), planning/ (plan), service/ (serve), submission/.
From Python: library.py (`korbert.finetune`, `run`, `pretrain`, `evaluate`, `compare`); results.py is what these return.
"""
