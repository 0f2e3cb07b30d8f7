"""Training in many ways: rates and seeds (search.py), frozen encoders, layers; scores, and what is compared by them."""
