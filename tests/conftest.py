import ctypes
import gc
import json
import os
import runpy
import shutil
import signal
import socket
import sys
import tempfile
from functools import lru_cache
from pathlib import Path

import hypothesis
import pytest

from korbert.messages import Message, in_language
from korbert.system.processor import bound_spinning

ROOT = Path(__file__).resolve().parent.parent
OFFLINE = Path(__file__).resolve().parent / "offline"

# Hubs stay offline, telemetry off and sockets at home, in this process and in those that tests start.
os.environ.update(HF_HUB_OFFLINE="1", HF_DATASETS_OFFLINE="1", TRANSFORMERS_OFFLINE="1", HF_HUB_DISABLE_TELEMETRY="1")
os.environ["PYTHONPATH"] = os.pathsep.join(filter(None, (str(OFFLINE), os.environ.get("PYTHONPATH"))))
sys.path.insert(0, str(OFFLINE))  # some tests hand this path on
sys.path.insert(0, str(ROOT / "tests" / "foreign"))  # not tests/ itself: tests/corpus would hide corpus
runpy.run_path(str(OFFLINE / "sitecustomize.py"))

os.environ["KORBERT_LANG"] = "en"  # whatever the locale
os.environ["KORBERT_PRECISION"] = "fp32"  # whatever is fastest here

# Tests run beside each other, and models of their size are faster on one thread.
os.environ.setdefault("OMP_NUM_THREADS", "1")
bound_spinning()

# Background jobs of a shell ignore SIGINT, and so do their child processes. Some tests send it.
signal.signal(signal.SIGINT, signal.default_int_handler)


# A test makes and drops many small objects, among a million that stay, those of PyTorch first of all.
gc.set_threshold(20_000, 20, 20)


def pytest_configure(config):
    """The fast suite draws a quarter of the usual examples.

    A shared machine may pause at any example: no deadlines, as no test measures time. In CI a commit gets the same
    verdict each time; elsewhere each run tries other examples.
    """
    is_fast = config.option.markexpr == "not slow"
    hypothesis.settings.register_profile(
        "korbert", deadline=None, derandomize="CI" in os.environ, max_examples=25 if is_fast else 100
    )
    hypothesis.settings.load_profile("korbert")


def pytest_collection_finish():
    """What was imported until now is no garbage, and need not be looked at again and again."""
    gc.freeze()


@pytest.fixture(scope="module", autouse=True)
def _memory_is_given_back():
    """What a file of tests has used goes back to the system: two processes of pytest would come to hold 8 GB."""
    yield
    gc.collect()
    if sys.platform == "linux":
        ctypes.CDLL(None).malloc_trim(0)


@pytest.fixture(autouse=True)
def _same_threads():
    """The threads that a stage takes are given back."""
    import torch  # once OMP_NUM_THREADS is set

    threads = torch.get_num_threads()
    yield
    torch.set_num_threads(threads)


@pytest.fixture(scope="session", autouse=True)
def _disk_is_not_waited_for():
    """No test turns the power off. Processes that tests start do wait."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(os, "fsync", lambda handle: None)
        yield


@pytest.fixture(autouse=True)
def every_message_can_be_said_in_korean(monkeypatch):
    """Each message that a test makes is put into Korean, too, from its real values."""
    made = Message.__new__

    def said(cls, *template, **values):
        message = made(cls, *template, **values)
        in_language(message, "ko")
        return message

    monkeypatch.setattr(Message, "__new__", said)


@pytest.fixture(scope="session")
def sample():
    """The folder of the sample that the repository carries."""
    return ROOT / "corpus" / "sample"


@pytest.fixture
def here(tmp_path, monkeypatch):
    """The working folder, which is empty."""
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.fixture
def memory_path(tmp_path):
    """An empty folder in memory, where the system has one: hundreds of trials do not wait for a disk."""
    memory = Path("/dev/shm")
    if not memory.is_dir() or shutil.disk_usage(memory).free < 2**30:
        yield tmp_path
        return
    with tempfile.TemporaryDirectory(dir=memory, prefix="korbert-test-") as folder:
        yield Path(folder)


@pytest.fixture
def command(capsys):
    """(arguments, code) -> what a command line prints, which has to end with that code: .out and .err."""
    from korbert.pipelines.cli import run_command

    def ran(*arguments, code=0):
        ended = run_command([*map(str, arguments)])
        said = capsys.readouterr()
        assert ended == code, said.err
        return said

    return ran


@pytest.fixture
def free_port():
    """A port of this machine that nobody listens on."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        return int(server.getsockname()[1])


@pytest.fixture(scope="session")
def korbert_data():
    """The folder of real data, as docs/data.md says; skips where $KORBERT_DATA is not set."""
    folder = os.environ.get("KORBERT_DATA")
    if not folder:
        assert not os.environ.get("KORBERT_DATA_IS_REQUIRED"), "KORBERT_DATA is not set"
        pytest.skip("KORBERT_DATA is not set: docs/data.md says how to fill that folder")
    return Path(folder)


@pytest.fixture(scope="session")
def tiny_tokenizer(sample):
    """A real tokenizer of 2,000 pieces, learned from the sample's reviews and some of its articles."""
    from collections import Counter

    from korbert.tokenization import Analyzer, AnalyzerOptions, Tokenizer, VocabularySettings, learn

    lines = [json.loads(line) for line in (sample / "reviews.jsonl").read_text(encoding="utf-8").splitlines()[:1500]]
    with (sample / "wiki.jsonl").open(encoding="utf-8") as articles:
        lines += [json.loads(next(articles)) for _ in range(20)]
    analyzer, counts = Analyzer(), Counter[str]()
    for analysis in analyzer.analyze_many(line["text"] for line in lines):
        counts.update(analysis.forms)
    settings = VocabularySettings(size=2_000)
    return Tokenizer(learn(counts.items(), settings), settings, AnalyzerOptions(), analyzer.versions)


@pytest.fixture(scope="session")
def tiny_config(tiny_tokenizer):
    """(settings) -> the config of an encoder of 2 x 16 over the pieces of tiny_tokenizer, with these settings."""
    from korbert.modeling import EncoderConfig

    def config(**settings):
        sizes = {"hidden_size": 16, "num_hidden_layers": 2, "num_attention_heads": 2, "intermediate_size": 16}
        return EncoderConfig.model_validate({"vocab_size": tiny_tokenizer.vocab_size, **sizes, **settings})

    return config


@pytest.fixture(scope="session")
def untrained(tmp_path_factory, tiny_tokenizer, tiny_config):
    """(settings of the encoder) -> the folder of an untrained model of 64 positions: not to be changed."""
    import torch

    from korbert.modeling import PretrainingModel, save_model

    def folder(**settings):
        path = tmp_path_factory.mktemp("untrained")
        config = tiny_config(max_position_embeddings=64, **settings)
        save_model(path, PretrainingModel(config, torch.Generator().manual_seed(1)), tiny_tokenizer)
        return path

    return folder


@pytest.fixture(scope="session", autouse=True)
def _kiwi_once():
    """Each tokenizer loads a Kiwi of its own, in seconds and 0.5 GB: here those with the same options share one."""
    from korbert.tokenization import analyzer

    load_kiwi = analyzer.load_kiwi
    kept = lru_cache(maxsize=3)(lambda options, threads: load_kiwi(json.loads(options), threads))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(analyzer, "load_kiwi", lambda options, threads: kept(json.dumps(options), threads))
        yield


@pytest.fixture(scope="session")
def foreign(tmp_path_factory):
    """model_type -> a folder of it, made once: not to be changed."""
    import torch
    import transformers
    from foreign_folders import CONFIGS, TOKENIZERS, foreign_tokenizer

    from korbert.modeling.adapters.transformers_config import CLASSES
    from korbert.system.transformers_package import quietly

    made: dict[str, Path] = {}

    def folder(model_type):
        if model_type not in made:
            tokenizer = foreign_tokenizer(TOKENIZERS[model_type])
            kind = getattr(transformers, CLASSES[model_type])
            ids = {"pad_token_id": tokenizer.pad_token_id}
            for name in ("bos", "eos", "cls", "sep"):
                if model_type in ("modernbert", "roberta", "longformer", "xlm-roberta", "albert"):
                    ids[f"{name}_token_id"] = 0
            config = kind.config_class(vocab_size=len(tokenizer), **ids, **CONFIGS[model_type])
            made[model_type] = tmp_path_factory.mktemp(model_type)
            with torch.random.fork_rng(), quietly():
                torch.manual_seed(7)
                model = kind(config)
                if model_type == "funnel":  # its segments would not matter at their initial size
                    for weight in model.parameters():
                        weight.data.mul_(5)
                model.save_pretrained(made[model_type])
            tokenizer.save_pretrained(made[model_type])
        return made[model_type]

    return folder


@pytest.fixture(scope="session")
def remote_code_aside(tmp_path_factory):
    """transformers copies code that it trusts into a cache of the user: not in tests."""
    import transformers

    with pytest.MonkeyPatch.context() as patch:
        cache = str(tmp_path_factory.mktemp("modules"))
        patch.setattr(transformers.dynamic_module_utils, "HF_MODULES_CACHE", cache)
        patch.setattr(sys, "path", [*sys.path, cache])
        yield
