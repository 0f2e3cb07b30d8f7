"""What Linux alone has is not needed to use models, to fine-tune them, and to search: all run where it is hidden."""

import os
import re
import subprocess
import sys

import pytest

from tests.pipelines.small_tasks import TEXTS, moods, write_table

_HIDING = """
import ctypes, os, shlex, signal, sys
import filelock, kiwipiepy, onnxruntime, pandas, scipy, sklearn, tensorboard  # they have their own ways
import torch.distributed.checkpoint.state_dict
sys.modules.update(fcntl=None, resource=None, termios=None, pwd=None)
for module, names in {
    os: "O_DIRECTORY O_NOFOLLOW fork geteuid getuid killpg mkfifo sched_getaffinity setsid statvfs sysconf",
    signal: "SIGALRM SIGHUP SIGKILL SIGUSR1 SIGUSR2 SIG_BLOCK SIG_SETMASK pthread_sigmask setitimer",
}.items():
    for name in names.split():
        delattr(module, name)
class Library(ctypes.CDLL):
    def __getattr__(self, name):
        if name in ("mallopt", "prctl"):
            raise AttributeError(name)
        return super().__getattr__(name)
ctypes.CDLL = Library
torch.cpu.get_capabilities = dict
from korbert.pipelines.cli import run_command
for line in sys.stdin:
    if words := shlex.split(line):
        assert run_command(words) == 0, line
"""


LINES = """
fill korbert-mini '그는 [MASK]에서 태어났다.'
finetune korbert-mini --train moods.csv --output mood --epochs 1 --set threads=1
predict mood moods.csv
index korbert-mini-embed texts.txt --output texts.index
similar korbert-mini-embed texts.index '지루한 이야기' --top 1 --way both
"""


@pytest.mark.slow
def test_models_fine_tuning_and_search_need_nothing_that_linux_alone_has(tmp_path):
    """Nor AVX2 or VNNI: without them, models run in fp32."""
    write_table(tmp_path / "moods.csv", *moods()[1:])
    (tmp_path / "texts.txt").write_text("\n".join(TEXTS), encoding="utf-8")
    elsewhere = {"ATEN_CPU_CAPABILITY": "default", "KIWI_ARCH_TYPE": "sse2", "KORBERT_PRECISION": "auto"}
    run = [sys.executable, "-c", _HIDING]
    done = subprocess.run(run, input=LINES, capture_output=True, text=True, cwd=tmp_path, env=os.environ | elsewhere)
    assert done.returncode == 0, done.stderr
    for expected in ("미국", '"label": "', r"1 .*이야기가 지루했다"):
        assert re.search(expected, done.stdout)
    assert "int8" not in done.stderr
