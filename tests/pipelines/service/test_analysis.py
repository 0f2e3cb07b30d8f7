"""Kiwi in a process of its own: same results as in this one, restarted when it dies, ends with its parent."""

import os
import signal
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from pathlib import Path

import pytest

from korbert.pipelines.service.analysis import AnalysisProcess, RemoteAnalyzer
from korbert.tokenization import Analyzer, AnalyzerOptions
from tests.running import wait_until

TEXTS = ["아버지가 방에 들어가신다.", "", "이걸 누가\n했어?", "ㅋㅋㅋ " * 40, "가\ud800나"]


@pytest.fixture(scope="module")
def process():
    models = [Path("korbert-mini"), Path("korbert-mini-nsmc"), Path("there is none")]
    with closing(AnalysisProcess(models)) as process:
        yield process


@pytest.mark.slow
def test_results_equal_those_in_this_process(process):
    for options in (AnalyzerOptions(), AnalyzerOptions(split_complex=True)):
        local = Analyzer(options)
        remote = RemoteAnalyzer(options, process)
        assert [remote.analyze(text) for text in TEXTS] == [local.analyze(text) for text in TEXTS]
        assert list(remote.analyze_many(TEXTS)) == list(local.analyze_many(TEXTS))


def test_signals_to_both_processes_do_not_end_it(process):
    child = process._process
    for number in (signal.SIGINT, signal.SIGTERM):
        os.kill(child.pid, number)
    RemoteAnalyzer(AnalyzerOptions(), process).analyze("학교에 간다")
    assert process._process is child


@pytest.mark.slow
def test_a_dead_process_is_replaced(process):
    analyzer = RemoteAnalyzer(AnalyzerOptions(), process)
    expected = analyzer.analyze("학교에 간다")
    process._process.kill()
    process._process.join()
    assert analyzer.analyze("학교에 간다") == expected
    child = process._process
    os.kill(child.pid, signal.SIGSTOP)
    with ThreadPoolExecutor() as pool:
        pending = pool.submit(analyzer.analyze, "학교에 간다")
        time.sleep(0.2)
        child.kill()
        with pytest.raises(RuntimeError, match=r"^the process of Kiwi ended with -9$"):
            pending.result()
    assert analyzer.analyze("학교에 간다") == expected


@pytest.mark.slow
def test_it_ends_with_its_parent():
    script = (
        "import time\n"
        "from pathlib import Path\n"
        "from korbert.pipelines.service.analysis import AnalysisProcess\n"
        "if __name__ == '__main__':\n"
        "    process = AnalysisProcess([Path('korbert-mini')])\n"
        "    print(process._process.pid, flush=True)\n"
        "    time.sleep(60)\n"
    )
    with subprocess.Popen([sys.executable, "-c", script], stdout=subprocess.PIPE, text=True) as parent:
        child = int(parent.stdout.readline())
        parent.kill()
    wait_until(lambda: not Path(f"/proc/{child}").exists(), 60)
