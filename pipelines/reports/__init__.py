"""The HTML pages of a recipe: a report in every artifact, and an index. Rendering them makes no artifact stale.

How an artifact becomes a page:

1. record.py: an `Artifact` opens `stage.json` and `run.json`, and streams the data files, never a whole corpus.
2. page.py: `render` looks up the stage's module in the stage table, and falls back to the record alone.
3. clean.py (with dropped.py), analyze.py, vocab.py, shard.py, pretrain.py, task.py (with kinds/,
   a module per kind of task): `headlines(artifact)` returns the main figures for the top of the page and the index,
   `story(artifact)` the page, and an optional `USE` or `use(folder)` (usage.py) the commands that use the artifact.
   evaluation.py is shared by the pages of tasks. lengths.py, labels.py and formatting.py turn lengths, keys and numbers
   into text.
4. elements.py: the elements of a story, as plain records; pictures.py draws charts as SVG.
5. details.py: the end of every page: run time, machine, counts, settings, inputs, versions, files.
6. page.py, templates/: `write` fills the templates and writes one self-contained file.
7. index_page.py: `index` shows all stages of the recipe with their states, headlines and links, and a table of task
   results from results.py, which ../cards.py also uses for the model card of an export.
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
