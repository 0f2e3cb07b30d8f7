"""The classes of encoders with boundaries and overlap in the hands of `transformers` and peft."""

import inspect

import pytest
import torch
import transformers
from exported import exported, small, tokenizer_of

from korbert.huggingface.modeling_korbert import KorbertModernBertConfig, KorbertModernBertModel
from korbert.modeling.models import PretrainingModel

HEADS = ("MaskedLM", "MultipleChoice", "QuestionAnswering", "SequenceClassification", "TokenClassification")
KINDS = dict(zip(HEADS[2:], ("QUESTION_ANS", "SEQ_CLS", "TOKEN_CLS"), strict=True))  # of peft
PAIR = ("어제 친구를 만났다.", "친구가 정말 반가웠다.")


@pytest.fixture(scope="module")
def folder(tmp_path_factory, tiny_tokenizer):
    """A pretrained encoder, exported."""
    model = PretrainingModel(small(tiny_tokenizer, "korbert-modernbert"))
    return exported(tmp_path_factory.mktemp("encoder"), model, tiny_tokenizer)


def loaded(head, folder, **settings):
    auto = getattr(transformers, f"AutoModel{head}")
    return auto.from_pretrained(folder, trust_remote_code=True, **settings).eval()


def test_every_head_is_put_on_an_exported_encoder(folder):
    encoder, rows = loaded("", folder), tokenizer_of(folder)(*PAIR, return_tensors="pt")
    with torch.inference_mode():
        expected = encoder(**rows).last_hidden_state
        for head in HEADS:
            model = loaded(f"For{head}", folder)
            torch.testing.assert_close(model.base_model(**rows).last_hidden_state, expected)
            # Trainer keeps the columns that `forward` names, and computes a loss if all labels are there.
            columns = {"input_ids", "attention_mask", "token_type_ids", "boundaries"}
            assert inspect.signature(model.forward).parameters.keys() >= columns
            labels, answers = set(transformers.utils.find_labels(type(model))), {"start_positions", "end_positions"}
            assert labels >= answers if head == "QuestionAnswering" else "labels" in labels and not labels & answers


def test_new_embeddings_begin_like_those_of_pieces_and_a_config_has_defaults(folder):
    config = transformers.AutoConfig.from_pretrained(folder, trust_remote_code=True)
    for head in ("", "ForTokenClassification"):
        auto = getattr(transformers, f"AutoModel{head}")
        embeddings = auto.from_config(config, trust_remote_code=True).base_model.embeddings
        for name in ("tok_embeddings", "boundary", "overlap"):
            assert 0 < getattr(embeddings, name).weight.abs().max() < 0.2, name
    sizes = {"vocab_size": 500, "hidden_size": 32, "num_hidden_layers": 2, "num_attention_heads": 4}
    model = KorbertModernBertModel(KorbertModernBertConfig(**sizes, intermediate_size=48)).eval()
    assert (model.config.first_piece_id, model.config.pad_token_id, model.config.sep_token_id) == (384, 0, 3)
    assert model.embeddings.boundary is model.embeddings.overlap is None
    assert model(torch.arange(9)[None]).last_hidden_state.shape == (1, 9, 32)


def test_vectors_of_pieces_in_place_of_ids(folder):
    model, rows = loaded("ForSequenceClassification", folder), tokenizer_of(folder)(PAIR[0], return_tensors="pt")
    types, ids = rows.pop("token_type_ids"), rows["input_ids"]
    with torch.inference_mode():
        expected = model(**rows, inputs_embeds=None).logits
        vectors = model.get_input_embeddings()(rows.pop("input_ids"))
        torch.testing.assert_close(model(**rows, inputs_embeds=vectors).logits, expected)
        for wrong in ({"inputs_embeds": vectors, "input_ids": ids}, {}):
            with pytest.raises(ValueError, match="give either input_ids or inputs_embeds"):
                model(**rows, **wrong)
        with pytest.raises(ValueError, match="marks what two texts share: with token_type_ids, pass input_ids"):
            model(**rows, inputs_embeds=vectors, token_type_ids=types)


@pytest.mark.filterwarnings("ignore:`is_gradient_checkpointing` is deprecated:FutureWarning")  # peft calls it
@pytest.mark.parametrize(("head", "kind"), KINDS.items())
def test_lora_needs_no_names_of_modules(folder, tmp_path, head, kind):
    peft = pytest.importorskip("peft")
    torch.manual_seed(0)
    settings = peft.LoraConfig(task_type=kind, modules_to_save=["classifier"])  # new, and for answers not saved
    model = peft.get_peft_model(loaded(f"For{head}", folder), settings)
    assert {name.split(".")[-4] for name, _ in model.named_parameters() if "lora_" in name} == {"Wqkv"}
    rows = tokenizer_of(folder)(*PAIR, return_tensors="pt")
    optimizer = torch.optim.SGD([one for one in model.parameters() if one.requires_grad], lr=0.1)
    for _ in range(3):
        outputs = model(**rows)
        (outputs.start_logits if head == "QuestionAnswering" else outputs.logits).square().sum().backward()
        optimizer.step()
    model.eval().save_pretrained(tmp_path)
    again = peft.PeftModel.from_pretrained(loaded(f"For{head}", folder), tmp_path).eval()
    with torch.inference_mode():
        for one, other in zip(again(**rows).to_tuple(), model(**rows).to_tuple(), strict=True):
            torch.testing.assert_close(one, other)
