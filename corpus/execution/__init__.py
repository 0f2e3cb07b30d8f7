"""Parallel work that can be interrupted at any moment: finished parts are kept, and output bytes are always the same.

How a work unit is processed:

1. `parts.py`: a unit has a part, with a key of all its inputs. A finished part of the same key is skipped.
2. `workers.py`: the other units are scheduled; one that kills or hangs its worker is halved.
3. `processes.py` runs them on this machine, or `cluster.py` on a Ray cluster.
4. `parts.py`: the worker writes the files of the part aside, renames them, and writes the record that finishes it.
5. `database.py`: work across parts is SQL over their files.
"""
