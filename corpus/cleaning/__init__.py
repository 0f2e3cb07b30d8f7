"""Cleaning: source rows -> documents worth learning from, and the dropped ones, each with its reason."""
