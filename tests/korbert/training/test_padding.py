import numpy as np
import torch

from korbert.training.padding import padded


def test_shorter_rows_are_padded():
    rows = [
        {"input_ids": np.array([5, 6], dtype=np.int32), "choices": np.array([True, False]), "other": np.array([1])},
        {"input_ids": np.array([7, 8, 9], dtype=np.int32), "choices": np.array([True, True, True])},
    ]
    batch = padded(rows, {"input_ids": -1, "choices": False})
    assert (batch.pop("lengths"), batch.pop("pieces")) == ((2, 3), 5)
    assert batch.keys() == {"attention_mask", "input_ids", "choices"}
    assert torch.equal(batch["attention_mask"], torch.tensor([[1, 1, 0], [1, 1, 1]]))
    assert torch.equal(batch["input_ids"], torch.tensor([[5, 6, -1], [7, 8, 9]]))
    assert torch.equal(batch["choices"], torch.tensor([[True, False, False], [True, True, True]]))
    assert [batch[name].dtype for name in batch] == [torch.int64, torch.int64, torch.bool]
