"""Parallel work that can be interrupted at any moment: what is finished is kept, and the bytes are always the same.

The way of a work unit:

1. `parts.py`: a unit has a part, with a key of all its inputs. A finished part of the same key is skipped.
2. `workers.py`: the other units are scheduled; one that kills or hangs its worker is halved.
3. `processes.py` runs them on this machine, or `cluster.py` on a Ray cluster.
4. `parts.py`: the worker writes the files of the part aside, renames them, and writes the record that finishes it.
5. `database.py`: what relates parts to each other is SQL over their files.
"""
