import pytest
import torch
import transformers
from exported import compared, differences, saved, small, tokenizer_of

from korbert.errors import ModelError, SettingsError
from korbert.huggingface.exporting import export
from korbert.modeling import DetectionModel, PretrainingModel, save_model
from korbert.modeling.adapters.onnx_export import TEXTS
from korbert.modeling.files.growing import copy_weights
from korbert.tokenization import AnalyzerOptions
from korbert.tokenization.extending import extend_tokenizer


def files_below(folder):
    return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


@pytest.mark.parametrize("family", ["bert", "modernbert"])
def test_a_model_with_added_words_is_exported(tiny_tokenizer, tmp_path, family):
    """It is grown, saved and exported, and compared by ids and scores of sentences that have the words, too."""
    source = saved(tmp_path / "source", PretrainingModel(small(tiny_tokenizer, family)), tiny_tokenizer)
    tokenizer = extend_tokenizer(tiny_tokenizer, ["반갑", "인구", "강추", "삐까뻔쩍체"], AnalyzerOptions())
    added = set(range(tiny_tokenizer.vocab_size, tokenizer.vocab_size))
    assert added & {id for text in TEXTS for id in tokenizer.encode(text).input_ids}
    model = PretrainingModel(small(tokenizer, family))
    copy_weights(model, tokenizer, source)
    save_model(tmp_path / "ours", model, tokenizer)
    export(tmp_path / "ours", tmp_path / "theirs")
    differences(model.eval(), tokenizer, tmp_path / "theirs")


def test_boundaries_are_not_lost_in_silence(tiny_tokenizer, tmp_path):
    """Without the code in the folder nothing loads, and what Trainer saves is loaded like the export."""
    model = PretrainingModel(small(tiny_tokenizer, "modernbert", boundary_embedding=True))
    compared(tmp_path, model, tiny_tokenizer)
    load = transformers.AutoModelForMaskedLM.from_pretrained
    with pytest.raises(ValueError, match="trust_remote_code"):
        load(tmp_path / "theirs", trust_remote_code=False)
    theirs = load(tmp_path / "theirs", trust_remote_code=True)
    theirs.save_pretrained(tmp_path / "again")
    again = load(tmp_path / "again", trust_remote_code=True)
    assert torch.equal(again.model.embeddings.boundary.weight, theirs.model.embeddings.boundary.weight)
    rows = tokenizer_of(tmp_path / "theirs")(list(TEXTS))
    padded = tokenizer_of(tmp_path / "theirs").pad(rows)
    assert {len(levels) for levels in padded["boundaries"]} == {max(map(len, rows["input_ids"]))}
    plain = PretrainingModel(small(tiny_tokenizer, "modernbert"))
    export(saved(tmp_path / "plain", plain, tiny_tokenizer), tmp_path / "other")
    assert not (tmp_path / "other" / "modeling_korbert.py").exists()


@pytest.mark.parametrize(
    ("family", "others", "message"),
    [
        ("modernbert", {}, "finds replaced pieces with a `modern`"),
        ("bert", {"layer_groups": 1}, r"layer_groups = 1\), and no class of transformers with such layers finds"),
    ],
)
def test_a_detector_that_is_no_electra_is_refused(tiny_tokenizer, tmp_path, family, others, message):
    """Those that are: tests/whole/test_mission.py."""
    model = DetectionModel(small(tiny_tokenizer, family, **others))
    with pytest.raises(ModelError, match=message):
        export(saved(tmp_path / "ours", model, tiny_tokenizer), tmp_path / "none")


NO_SUCH = "`modern` has {}, ModernBERT has no such thing: train one without"


@pytest.mark.parametrize(
    ("family", "others", "message"),
    [
        ("bert", {"type_vocab_size": 0}, "has no token types, BertModel has: train one with type_vocab_size = 2"),
        ("bert", {"boundary_embedding": True}, "`bert` has boundary_embedding = true, only a `modern` is exported wi"),
        ("bert", {"overlap_embedding": True}, "overlap_embedding = true, .*: fine-tune with overlap = false"),
        ("bert", {"piece_weights": True}, "piece_weights = true, .*: fine-tune with piece_weights = false"),
        ("modernbert", {"layer_groups": 1}, NO_SUCH.format("layer_groups = 1")),
        ("modernbert", {"embedding_size": 8}, NO_SUCH.format("embedding_size = 8")),
        ("modernbert", {"type_vocab_size": 2}, NO_SUCH.format("type_vocab_size = 2")),
    ],
)
def test_what_transformers_cannot_compute_is_refused(tiny_tokenizer, tmp_path, family, others, message):
    source = saved(tmp_path / "ours", PretrainingModel(small(tiny_tokenizer, family, **others)), tiny_tokenizer)
    with pytest.raises(ModelError, match=message):
        export(source, tmp_path / "theirs")
    assert not (tmp_path / "theirs").exists()


@pytest.fixture(scope="module")
def ours(tiny_tokenizer, tmp_path_factory):
    """An artifact with a model, such as artifacts/demo/pretrain."""
    folder = tmp_path_factory.mktemp("pretrain")
    saved(folder / "model", PretrainingModel(small(tiny_tokenizer, "modernbert")), tiny_tokenizer)
    return folder


def test_only_a_new_folder_is_written_to(ours, tmp_path):
    (tmp_path / "file").write_text("글")
    (tmp_path / "dangling").symlink_to(tmp_path / "nowhere")
    before = files_below(tmp_path)
    for name, said in (
        *((name, "already exists: name a new folder") for name in ("file", "dangling")),
        ("file/below", r"cannot be made \(.*file is not a writable folder\): name another one"),
        (ours / "model" / "theirs", r"lies in .*pretrain\d+, which is read: name another place"),
    ):
        with pytest.raises(SettingsError, match=said):
            export(ours, tmp_path / name)
    assert files_below(tmp_path) == before
    export(str(ours), str(tmp_path / "new" / "mine"))
    names = {path.name for path in (tmp_path / "new" / "mine").iterdir()}
    assert names >= {"config.json", "model.safetensors", "tokenization_korbert.py"}
    assert [path.name for path in (tmp_path / "new").iterdir()] == ["mine"]


def test_the_same_model_has_the_same_bytes(ours, tmp_path):
    for name in ("earlier", "again"):
        export(ours, tmp_path / name)
    assert files_below(tmp_path / "earlier") == files_below(tmp_path / "again")
