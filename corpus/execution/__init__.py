"""Who does the work of the corpus stages, and what is left of it when it is cut off."""
