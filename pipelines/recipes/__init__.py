"""Recipes: the TOML files that are shipped, and the code that reads (loading.py) and writes (template.py) them."""
