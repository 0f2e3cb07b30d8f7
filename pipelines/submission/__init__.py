"""KorQuAD submissions: written, run in isolation, checked."""
