"""The tests that `transformers` has for its own models and tokenizers, on ours.

They are in its source distribution alone, so TRANSFORMERS_SOURCE names the unpacked one of the installed version:

    pip download --no-deps --no-binary :all: transformers==5.23.0 && tar xf transformers-5.23.0.tar.gz
"""

import importlib
import os
import re
import sys
import tempfile
import unittest
from pathlib import Path
from types import ModuleType

import pytest
import torch
import transformers
from exported import exported, small, tokenizer_of
from transformers.models.auto.modeling_auto import MODEL_MAPPING_NAMES

from korbert.huggingface import modeling_korbert as modeling
from korbert.modeling.models import PretrainingModel

pytest.importorskip("parameterized", reason="the tests of transformers need it")
pytestmark = [pytest.mark.slow, pytest.mark.filterwarnings("ignore")]

_PACKAGE = "tests_of_transformers"
_ABSENT = {"exporters.test_export": "ExportTesterMixin", "generation.test_utils": "GenerationTesterMixin"}
_OLD_KEY = "config.gradient_checkpointing, of an earlier version, is read by the encoder that ours replaces"


def theirs(name):
    """A module of their tests, as part of a package that is not called "tests"."""
    source = Path(os.environ.get("TRANSFORMERS_SOURCE", "nowhere"))
    record = source / "PKG-INFO"
    if not record.is_file() or f"\nVersion: {transformers.__version__}\n" not in record.read_text(encoding="utf-8"):
        why = f"TRANSFORMERS_SOURCE names no source distribution of transformers {transformers.__version__}"
        pytest.skip(why, allow_module_level=True)
    if _PACKAGE not in sys.modules:
        package = sys.modules[_PACKAGE] = ModuleType(_PACKAGE)
        package.__path__ = [str(source / "tests")]
        for absent, mixin in _ABSENT.items():  # which that distribution lacks, and which test what ours do not do
            parent, module = absent.partition(".")[0], ModuleType(f"{_PACKAGE}.{absent}")
            setattr(module, mixin, type(mixin, (), {}))
            sys.modules[f"{_PACKAGE}.{parent}"] = ModuleType(f"{_PACKAGE}.{parent}")
            sys.modules[module.__name__] = module
    return importlib.import_module(f"{_PACKAGE}.{name}")


def _copy(method):
    """A function of its own: the marks of the original hold for all classes."""

    def run(self):
        method(self)

    return run


def failing(allowed):
    """Marks the tests of a class that have to fail. allowed: expression for their names -> why."""

    def marked(cls):
        for expression, reason in allowed.items():
            names = [name for name in dir(cls) if re.fullmatch(expression, name)]
            assert names, expression
            for name in names:
                setattr(cls, name, pytest.mark.xfail(reason=reason, strict=True)(_copy(getattr(cls, name))))
        return cls

    return marked


_models, _tokenizers = theirs("test_modeling_common"), theirs("test_tokenization_common")


class _Tester:
    """What their tests ask for: a config, and a batch of 3 rows of 9 pieces in two texts."""

    is_training, batch_size, seq_length = True, 3, 9
    hidden_size, num_hidden_layers, num_attention_heads = 32, 2, 4

    def __init__(self, **embeddings):
        self.embeddings = embeddings

    def prepare_config_and_inputs_for_common(self):
        sizes = {"hidden_size": 32, "num_hidden_layers": 2, "num_attention_heads": 4, "intermediate_size": 48}
        sizes |= {"vocab_size": 500, "max_position_embeddings": 64}
        config, ids = modeling.KorbertModernBertConfig(**sizes, **self.embeddings), _models.ids_tensor([3, 9], 500)
        types = (torch.arange(9) > 4).long().expand(3, 9).clone()
        inputs = {"input_ids": ids.clamp(5), "attention_mask": torch.ones_like(ids), "token_type_ids": types}
        if config.boundary_embedding:
            inputs["boundaries"] = _models.ids_tensor([3, 9], 4)
        return config, inputs


class _Models(_models.ModelTesterMixin):
    all_model_classes = tuple(getattr(modeling, name) for name in modeling.__all__ if name != "KorbertModernBertConfig")

    def _prepare_for_class(self, inputs_dict, model_class, return_labels=False):
        name, inputs = model_class.__name__, dict(inputs_dict)
        if name.endswith("ForMultipleChoice"):
            for key, column in inputs.items():
                if isinstance(column, torch.Tensor):
                    inputs[key] = column.unsqueeze(1).expand(-1, 4, -1).contiguous()
        labels = torch.zeros(3, 9, dtype=torch.long) if "Token" in name or "Masked" in name else torch.zeros(3).long()
        if return_labels and name.endswith("ForQuestionAnswering"):
            inputs |= {"start_positions": labels, "end_positions": labels}
        elif return_labels and not name.endswith("Model"):
            inputs["labels"] = labels
        return inputs


@pytest.fixture(scope="module", autouse=True)
def _known_as_encoder():
    """Their tests ask this table which class has no loss."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setitem(MODEL_MAPPING_NAMES, "korbert-modernbert", "KorbertModernBertModel")
        yield


@failing(
    {
        "test_gradient_checkpointing_backward_compatibility": _OLD_KEY,
        "test_inputs_embeds": "overlap is found in input_ids: with token types and inputs_embeds alone it is refused",
        "test_inputs_embeds_matches_input_ids": "the same",
    }
)
class TestWithOverlap(_Models, unittest.TestCase):
    model_tester = _Tester(overlap_embedding=True)


@failing(
    {
        "test_gradient_checkpointing_backward_compatibility": _OLD_KEY,
        r"test_eager_matches_sdpa_inference_\d\d_.*": "gives no boundaries, which are refused; passes with overlap",
        "test_model_rope_scaling_from_config_.*": "the same",
    }
)
class TestWithBoundaries(_Models, unittest.TestCase):
    model_tester = _Tester(boundary_embedding=True)


@pytest.fixture(scope="class")
def _folder_of_tokenizer(request, tiny_tokenizer, tmp_path_factory):
    model = PretrainingModel(small(tiny_tokenizer, "korbert-modernbert"))
    request.cls.folder = exported(tmp_path_factory.mktemp("tokenizer"), model, tiny_tokenizer)


@pytest.mark.usefixtures("_folder_of_tokenizer")
@failing(
    {
        "test_internal_consistency": "spaces between morphemes are not in their pieces",
        "test_maximum_encoding_length_(pair|single)_input": "windows are rows, as those of fast tokenizers",
        "test_tokenizer_store_full_signature": "names of files that only some folders have are no settings",
    }
)
class TestTokenizer(_tokenizers.TokenizerTesterMixin, unittest.TestCase):
    test_tokenizer_from_extractor = False  # there is no tokenizer.json
    _data = "나는 어제 학교에 갔다가 친구를 만났다.\n정말 반가웠어!"

    @classmethod
    def setUpClass(cls):
        cls.tmpdirname = tempfile.mkdtemp()

    def setUp(self):
        tokenizer = tokenizer_of(self.folder)
        tokenizer.save_pretrained(self.tmpdirname)
        type(self).tokenizer_class = type(tokenizer)
        type(self).tokenizers_list = [(type(tokenizer), self.tmpdirname, {})]
