"""What a model makes of a text on the way to its answer: attention (attention.py), and what speaks for a label."""
