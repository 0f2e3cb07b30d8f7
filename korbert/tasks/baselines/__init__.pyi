from .features import TextPairs as TextPairs
from .tfidf import fit_labels as fit_labels
from .tfidf import fit_multilabel as fit_multilabel
from .tfidf import fit_scores as fit_scores
