"""Texts of a labelled file in two dimensions, layer by layer, to see in which layers the labels separate."""

from collections import Counter
from pathlib import Path
from typing import Any, Literal

import numpy as np
import torch
from numpy.typing import NDArray
from sklearn.decomposition import PCA
from sklearn.manifold import TSNE

from korbert.errors import CorpusError
from korbert.modeling.heads import mean_of_pieces
from korbert.pipelines.reports.distributions import most_frequent
from korbert.progress import track
from korbert.tasks.files import ROLES, read_rows
from korbert.tokenization import pad_batch
from korbert.training.devices import moved

Way = Literal["pca", "tsne"]

_AT_ONCE = 32  # texts


def layer_points(
    loaded: Any, file: Path, columns: dict[str, list[str]], form: Any, *, way: Way, most: int
) -> dict[str, Any]:
    """Data for reports.layers.write_pictures, from a file of labelled texts.

    loaded: a model with its tokenizer. most: maximum number of texts to draw, evenly spaced in the file. way: principal
    components, or t-SNE (van der Maaten and Hinton 2008) from scikit-learn. Labels are sorted by frequency.
    """
    rows = read_rows([file], [ROLES["text"], ROLES["label"]], form=form, columns=columns).rows
    if len(rows) < 3:
        raise CorpusError(f"{file}: {len(rows)} rows with text and label: at least three are needed")
    chosen = np.unique(np.linspace(0, len(rows) - 1, min(most, len(rows))).round().astype(int))
    texts, of_texts = ([rows[index][role] for index in chosen] for role in ("text", "label"))
    labels = list(most_frequent(Counter(of_texts)))
    members = np.array([labels.index(label) for label in of_texts])
    layers = []
    with track("draw", loaded.network.config.num_hidden_layers + 1, "layers") as advance:
        for vectors in vectors_by_layer(loaded, texts):
            if way == "pca":
                projection = PCA(2, svd_solver="full")
            else:
                projection = TSNE(perplexity=min(30.0, (len(vectors) - 1) / 3), init="pca", random_state=0)
            points = np.asarray(projection.fit_transform(vectors), np.float64)
            # The share of texts whose nearest neighbour by cosine has the same label.
            unit = vectors / np.maximum(np.linalg.norm(vectors, axis=1, keepdims=True), 1e-12)
            cosines = unit @ unit.T
            np.fill_diagonal(cosines, -np.inf)
            same = float((members[cosines.argmax(axis=1)] == members).mean())
            layers.append({"points": points.tolist(), "neighbours": same})
            advance(1)
    return {
        "set": file.name,
        "way": way,
        "labels": labels,
        "members": members.tolist(),
        "layers": layers,
        "chance": float(((np.bincount(members) / len(members)) ** 2).sum()),
    }


def vectors_by_layer(loaded: Any, texts: list[str]) -> NDArray[np.float32]:
    """Mean vector of each text over its pieces, special tokens included, in every layer: (L + 1, N, D)."""
    model, tokenizer = loaded.network, loaded.tokenizer
    longest, device = model.config.max_position_embeddings, next(model.parameters()).device
    encodings = tokenizer.encode_batch(texts, max_length=longest)
    order = sorted(range(len(texts)), key=lambda index: len(encodings[index]))
    vectors: NDArray[np.float32] | None = None
    for first in range(0, len(order), _AT_ONCE):
        indices = order[first : first + _AT_ONCE]
        arrays = pad_batch([encodings[index] for index in indices], tokenizer.pad_id)
        batch = moved({name: torch.from_numpy(array) for name, array in arrays.items()}, device)
        mask = batch["attention_mask"]
        with torch.inference_mode():
            layers = model.encoder.all_layers(batch["input_ids"], mask, boundaries=batch["boundaries"]).float()
            means = torch.stack([mean_of_pieces(layer, mask) for layer in layers]).cpu().numpy()
        if vectors is None:
            vectors = np.zeros((len(means), len(texts), means.shape[-1]), dtype=np.float32)
        vectors[:, indices] = means
    assert vectors is not None
    return vectors
