"""The HTML pages of a recipe: a report in every artifact, and an index. Rendering them makes no artifact stale.

How an artifact becomes a page:

1. artifacts/record.py: an `Artifact` opens `stage.json` and `run.json`, and streams the data files, never a whole
   corpus.
2. stage_page.py: `render` looks up the stage's module in the stage table, falls back to the record alone, and ends
   with it: run time, machine, counts, settings, inputs, versions.
3. clean.py, analyze.py, vocab.py, shard.py, pretrain.py, task.py (with kinds/,
   a module per kind of task): `figures(artifact)` returns the main figures for the top of the page, the index and the
   terminal, `story(artifact)` the page, and an optional `use(folder)` the commands that use the artifact.
4. artifacts/figures.py: the label and format of a figure; artifacts/formatting.py turns any number into text.
5. elements.py: the elements of a story, as plain records; distributions.py makes them from lengths and counts,
   examples.py from texts, pictures.py draws charts as SVG.
6. page.py, templates/: `write` fills the templates and writes one self-contained file.
7. index_page.py: `index` shows all stages of the recipe with their states, figures and links, and a table of task
   results from task_scores.py, which cards.py also uses for the model card of an export.

summary.py prints tables in the terminal; compare.py, preview.py, layers.py, noise.py, searching.py and look/ make the
pages of commands.
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
