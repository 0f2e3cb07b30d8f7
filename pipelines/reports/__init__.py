"""The HTML pages of a recipe: a report in every artifact, and an index. Rendering them makes no artifact stale.

How an artifact becomes a page:

1. artifacts/record.py: an `Artifact` opens `stage.json` and `run.json`, and streams the data files, never a whole
   corpus.
2. artifacts/stage_page.py: `render` looks up the stage's module in the stage table, falls back to the record alone,
   and ends with it: run time, machine, counts, settings, inputs, versions.
3. artifacts/: a module a stage (with kinds/, a module a kind of task): `figures(artifact)` returns the main figures
   for the top of the page, the index and the terminal, `story(artifact)` the page, and an optional `use(folder)` the
   commands that use the artifact.
4. The label and format of a figure, and any number as text: figures.py and formatting.py of pipelines/artifacts.
5. drawing/: the elements of a story, as plain records; made from lengths and counts (distributions.py), from texts
   (examples.py), as charts in SVG (pictures.py); page.py fills templates/ and writes one self-contained file.
6. pages/: the index of a recipe, with the state, figures and links of every stage and a table of task results, and
   the pages of commands; look/ is the page that shows what a model does with a text.

summary.py prints tables in the terminal; cards.py writes the model card of an export.
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
