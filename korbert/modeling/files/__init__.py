"""Model folders: saved and loaded (storage.py), packed (packing.py), grown into another model (growing.py)."""
