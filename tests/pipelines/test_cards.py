"""The model card of an export: what the records say, in a form that Hugging Face reads."""

import json
import shutil

import pytest
import torch
from huggingface_hub import ModelCard

from korbert.errors import ArtifactError
from korbert.modeling import ClassificationModel, save_model
from korbert.pipelines.reports.cards import model_card
from tests.pipelines.reports.conftest import change, make, write_json
from tests.pipelines.reports.task_artifacts import labelled, numbered, write_task

ARCHITECTURE = "ModernBertForSequenceClassification"


def _card(folder, architecture=ARCHITECTURE, **exported):
    config = json.loads((folder / "model/config.json").read_text(encoding="utf-8"))
    return model_card(folder, config, {"architectures": [architecture], **exported})


def test_card_of_a_task_holds_its_scores_and_record(tmp_path):
    folder = write_task(tmp_path, "mood", labelled())
    scores = json.loads((folder / "scores.json").read_text())
    text = _card(folder)
    card = ModelCard(text)
    assert card.data.language == "ko"
    assert (card.data.library_name, card.data.pipeline_tag) == ("transformers", "text-classification")
    assert card.data.tags == ["korbert", "mood"]
    assert card.data.license is None
    values = {result.metric_type: result.metric_value for result in card.data.eval_results}
    assert values == scores["rows"][0]["scores"]
    of = {(result.task_type, result.dataset_name) for result in card.data.eval_results}
    assert of == {("text-classification", "mood")}
    main = scores["models"][0]
    deviation = 100 * scores["models"][0]["macro_f1"]["deviation"]
    assert f"| mood | macro F1 | {100 * main['macro_f1']['mean']:.1f} % ± {deviation:.1f} (2 seeds) |" in text
    assert all(pair["sentence"].replace("<", "\\<") in text for pair in scores["comparisons"])
    assert "- train.csv: 100 rows\n- 10 rows are held out\n" in text
    assert "/somewhere" not in text
    assert "| digest | " + "ab" * 32 in text
    assert 'AutoModelForSequenceClassification.from_pretrained("THIS FOLDER")' in text
    own = _card(folder, "KorbertModernBertModel", auto_map={"AutoModel": "modeling_korbert.KorbertModernBertModel"})
    assert 'AutoModel.from_pretrained("THIS FOLDER", trust_remote_code=True)' in own
    assert "optimistic" not in text
    assert "중립 \\<i\\>" in text  # a label is no markup


def test_card_of_sentence_vectors_names_their_library(tmp_path):
    folder = write_task(tmp_path, "alike", numbered())
    change(folder / "model/config.json", kind="embedding")
    text = _card(folder, "ModernBertModel")
    card = ModelCard(text)
    assert (card.data.library_name, card.data.pipeline_tag) == ("sentence-transformers", "sentence-similarity")
    assert 'model = SentenceTransformer("THIS FOLDER", trust_remote_code=True)\n' in text
    assert "AutoModel" not in text


def test_known_set_is_the_data_set_and_validation_scores_have_a_caveat(tmp_path):
    folder = write_task(tmp_path, "mood", labelled(), scored_on="valid")
    change(folder / "stage.json", settings={"set": "hate-speech"})
    text = _card(folder)
    assert {result.dataset_name for result in ModelCard(text).data.eval_results} == {"hate-speech"}
    assert "Validation scores are optimistic: the same rows chose the epoch." in text
    write_json(folder / "scores.json", {"metrics": ["macro_f1"], "models": []})
    with pytest.raises(ArtifactError, match=r"tasks\.mood"):
        _card(folder)


def test_pretraining_is_described_if_its_digest_matches(tmp_path):
    recipe = tmp_path / "시험"
    folder = write_task(recipe, "mood", labelled())
    pretrained = make(recipe, "pretrain")
    assert "## Pretraining" not in _card(folder)  # another one than the task began with
    change(pretrained / "stage.json", digest="p" * 64)
    assert "| optimizer steps | 4,000 |" in _card(folder)
    assert _card(folder).count("# 시험-mood\n") == 1


def test_card_of_a_pretrained_model(tmp_path):
    pretrained = make(tmp_path, "pretrain")
    encoder = {"architecture": "bert", "num_hidden_layers": 2, "hidden_size": 128, "vocab_size": 16000}
    write_json(pretrained / "model/config.json", {"kind": "pretraining", "encoder": encoder})
    card = ModelCard(_card(pretrained, "BertForPreTraining"))
    assert card.data.pipeline_tag == "fill-mask"
    assert card.data.eval_results is None
    assert "## Results" not in card.content


def test_export_writes_the_card(tmp_path, tiny_tokenizer, tiny_config, command):
    config = tiny_config(max_position_embeddings=64, type_vocab_size=0, architecture="modern")
    folder = write_task(tmp_path / "mine", "mood", labelled())
    model = ClassificationModel(config, 3, "mean", generator=torch.Generator().manual_seed(1))
    shutil.rmtree(folder / "model")
    save_model(folder / "model", model, tiny_tokenizer)
    for model_folder, output in ((folder, "one"), (folder / "model", "two")):
        command("export", model_folder, tmp_path / output)
    first, second = ((tmp_path / output / "README.md").read_text(encoding="utf-8") for output in ("one", "two"))
    assert first == second
    assert ModelCard(first).data.eval_results[0].dataset_name == "mood"

    save_model(tmp_path / "plain", model, tiny_tokenizer)  # of no artifact
    command("export", tmp_path / "plain", tmp_path / "three")
    assert not (tmp_path / "three" / "README.md").exists()
