"""Files, processes, signals, terminals and installed packages. Nothing here knows of text or models.

durable.py (files that are whole or absent), scratch.py (folders for a while), processes.py, interruption.py (signals),
ranks.py (the processes of one training), progress.py and terminal.py (what people see), extras.py and versions.py
(installed packages), processor.py.
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
