"""The stages. The rest of the package knows a stage only by its entry in table.py; to add a stage, add an entry.

1. table.py: the entries, in the order in which stages run.
2. clean.py, analyze.py, vocab.py, shard.py, pretrain.py: a module per stage, with
   `run(settings, inputs, output, runtime) -> Counts`. It reads only `inputs` and writes only below `output`, which may
   hold finished work of an interrupted run, and into the folder of encoded texts that the inputs name.
   `output/work/` and `output/checkpoints/` are its scratch folders; the runner removes them at the end.
   Stages of tasks (nsmc, korquad, and recipe sections [tasks.NAME]) are built by `table.task_stage`.
3. stage_settings.py: recipe sections that combine settings of several packages.
"""
