"""The page that shows what a model does with a text."""
