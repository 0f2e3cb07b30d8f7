"""Work units on a Ray cluster: the same parts as with processes, and the loss of workers and machines.

test_cluster.py runs them.
"""

import contextlib
import os
import signal
import sys
import threading
import time
from pathlib import Path

import faults
import pytest

os.environ["RAY_USAGE_STATS_ENABLED"] = "0"  # before Ray is imported

import ray
from ray.cluster_utils import Cluster

from korbert.corpus import CleanSettings, Workers, clean
from korbert.corpus.execution.workers import run_units
from korbert.errors import CorpusError, KorbertError

pytestmark = pytest.mark.filterwarnings("ignore")  # Ray's own: files it leaves open


@pytest.fixture(scope="module", autouse=True)
def stopped():
    yield
    ray.shutdown()


SETTINGS = CleanSettings(sources=[{"name": "mine", "path": "x", "id": ""}], part_bytes=4096)


def test_units_on_ray_are_halved_to_the_culprit():
    outcomes = run_units(faults.dies_on_seven, [(1, 2), (6, 7, 8)], workers=Workers(2, "ray"), split=faults.halves)
    by_unit = {outcome.unit: outcome for outcome in outcomes}
    assert by_unit[1, 2].results == [(1, 2)]
    assert [number for result in by_unit[6, 7, 8].results for number in result] == [6, 8]
    (lost,) = by_unit[6, 7, 8].lost
    assert (lost.unit, lost.reason) == ((7,), "crashed")
    assert lost.detail == "its worker process ended"  # as a process here would say: it goes into artifacts


def _listening(parent):
    """The addresses at which the descendants of a process listen, as /proc gives them."""
    parents = {}
    for path in Path("/proc").glob("[0-9]*"):
        try:
            parents[int(path.name)] = int((path / "stat").read_text().rpartition(")")[2].split()[1])
        except OSError:  # it has just ended
            continue
    sockets = set()
    for pid in parents:
        above = pid
        while above not in (0, 1, parent):
            above = parents.get(above, 0)
        if above == parent:
            for link in Path(f"/proc/{pid}/fd").glob("*"):
                with contextlib.suppress(OSError):
                    sockets.add(str(link.readlink()))
    lines = [line.split() for name in ("tcp", "tcp6") for line in Path("/proc/net", name).read_text().splitlines()[1:]]
    return [line[1].partition(":")[0] for line in lines if line[3] == "0A" and f"socket:[{line[9]}]" in sockets]


@pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")
def test_a_local_cluster_listens_on_loopback_alone():
    if ray.is_initialized():
        ray.shutdown()
    before = _listening(os.getpid())
    assert next(run_units(faults.double, [(1,)], workers=Workers(1, "ray"))).results == [(2,)]
    listening = _listening(os.getpid())
    assert len(listening) > len(before)
    assert set(listening) <= {"0100007F", "0000000000000000FFFF00000100007F", "00000000000000000000000001000000"}


def test_a_unit_that_hangs_is_lost_alone():
    workers = Workers(2, "ray")
    outcomes = list(
        run_units(faults.hangs_on_seven, [(7, 8)], workers=workers, split=faults.halves, deadline=lambda _: 2.0)
    )
    assert [(lost.unit, lost.reason) for outcome in outcomes for lost in outcome.lost] == [((7,), "timeout")]
    assert [result for outcome in outcomes for result in outcome.results] == [(8,)]


@pytest.mark.parametrize(
    ("function", "number", "options", "error", "message"),
    [
        (faults.refuses, 3, {"split": faults.halves}, CorpusError, "unit 3: 쓸 수 없다"),
        (faults.loses_its_connection, 3, {"split": faults.halves}, TimeoutError, "Connection timed out"),
        (faults.dies_on_seven, 7, {}, KorbertError, "a worker died"),
        (faults.double, 1, {"initializer": faults.fails_to_start}, RuntimeError, "no Kiwi here"),
        (faults.double, 1, {"initializer": faults.dies_at_start}, KorbertError, "actors end as soon as they start"),
    ],
)
def test_failing_workers_are_errors(function, number, options, error, message):
    with pytest.raises(error, match=message):
        list(run_units(function, [(number,)], workers=Workers(2, "ray"), **options))


def test_a_lost_worker_and_a_lost_machine_cost_nothing(tmp_path, bytes_below, monkeypatch, caplog):
    """A cluster of two nodes on this machine: a worker of the second is killed, then the whole node."""
    ray.shutdown()
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join(path for path in sys.path if path))  # as if all were installed
    cluster = Cluster(initialize_head=True, head_node_args={"num_cpus": 1})
    second = cluster.add_node(num_cpus=1)
    try:
        units = [(str(tmp_path / f"{number}"), number) for number in range(12)]
        outcomes = run_units(faults.tells_its_node, units, workers=Workers(2, "ray", cluster.address))
        first = next(outcomes)
        assert not first.halved
        killer = threading.Thread(target=_kill_one_of, args=(tmp_path, second, cluster), daemon=True)
        killer.start()
        results = [result for outcome in (first, *outcomes) for result in outcome.results]
        killer.join()
        assert sorted(number for number, _ in results) == list(range(12))
        told = [record.getMessage() for record in caplog.records if "its part is done again" in record.getMessage()]
        assert "worker process has died" in told[0]
        assert "node was terminated" in told[1]
        lines = [f"{n}번째 글에는 강과 산과 들이 나온다. 그 뒤에 {n * 7}가지 이야기가 이어진다." for n in range(400)]
        (tmp_path / "text.txt").write_text("\n".join([*lines, *lines[:50], "짧다"]), "utf-8")
        sources = {"mine": [tmp_path / "text.txt"]}
        clean(SETTINGS, sources, tmp_path / "ray", workers=Workers(1, "ray", cluster.address))
        clean(SETTINGS, sources, tmp_path / "native", workers=2)
        assert bytes_below(tmp_path / "ray") == bytes_below(tmp_path / "native")
    finally:
        ray.shutdown()
        cluster.shutdown()


def _kill_one_of(folder, second, cluster):
    """Kills a worker of the second node once a unit runs there, and the node once another one does."""
    killed = set()
    while not killed:
        for path in folder.glob("*"):
            pid, node = path.read_text().split() if path.is_file() and path.read_text().count(" ") else ("", "")
            if node == second.node_id:
                os.kill(int(pid), signal.SIGKILL)
                killed.add(pid)
                break
        time.sleep(0.05)
    for _ in range(600):
        again = [path.read_text().split() for path in folder.glob("*") if path.is_file()]
        if any(len(words) == 2 and words[1] == second.node_id and words[0] not in killed for words in again):
            break
        time.sleep(0.05)
    cluster.remove_node(second)
