"""Files of texts in, files of results out: predict, embed, tokenize, questions."""
