import json
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from korbert.corpus.execution import parts
from tests.running import units_here, wait_until

sys.path.insert(0, str(Path(__file__).parent))  # `faults`, which spawned workers import too

from programs import started


@pytest.fixture(scope="module", autouse=True)
def _one_worker_here(request: pytest.FixtureRequest) -> Iterator[None]:
    """One worker is this process, and two are real ones: what they do is the same. Tests of workers start all."""
    most = 0 if "execution" in request.path.parts else 1
    with units_here(most):
        yield


@pytest.fixture(scope="session")
def bytes_below() -> Callable[[Path], dict[str, bytes]]:
    """Name -> content of all files of a folder except scratch files."""

    def read(folder: Path) -> dict[str, bytes]:
        paths = (path for path in sorted(folder.rglob("*")) if path.is_file())
        names = {path.relative_to(folder).as_posix(): path for path in paths}
        return {name: path.read_bytes() for name, path in names.items() if not name.startswith("work/")}

    return read


@pytest.fixture
def others_with(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[Callable[[], object], str], bool]:
    """Whether a stage makes every part in tmp_path/out anew once another version of the library is installed."""

    def keys() -> set[str]:
        return {json.loads(path.read_text("utf-8"))["key"] for path in tmp_path.glob("out/work/*/part-*.json")}

    def run(stage: Callable[[], object], library: str) -> bool:
        stage()
        before = keys()
        real = parts.installed_version
        with monkeypatch.context() as patch:
            patch.setattr(parts, "installed_version", lambda name: "0.0.1" if name == library else real(name))
            stage()
        return bool(before) and before.isdisjoint(keys())

    return run


@pytest.fixture
def kill_when(tmp_path: Path) -> Callable[[str, Callable[[], bool]], None]:
    """Runs the statements of a script in a new process, and kills that process alone once the condition holds."""

    def run(statements: str, condition: Callable[[], bool]) -> None:
        program = "if __name__ == '__main__':\n" + "".join(f"    {line}\n" for line in statements.splitlines())
        with started(tmp_path, program, stderr=subprocess.DEVNULL) as process:
            wait_until(condition, program=process)
            process.send_signal(signal.SIGKILL)

    return run
