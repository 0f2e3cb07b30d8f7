import pytest
import torch
from torch.distributed import HashStore

from korbert.errors import EndedElsewhere, ProcessLost, SettingsError
from korbert.system.ranks import (
    World,
    all_reduce,
    all_reduce_max,
    broadcast,
    current_world,
    is_secondary_rank,
    require_rows,
    world,
)
from korbert.training.distributed import WAIT, _reported_once, add_over_world, connected_processes

CPU = torch.device("cpu")


def test_without_torchrun_there_is_one_process(monkeypatch):
    for name in ("RANK", "WORLD_SIZE"):
        monkeypatch.delenv(name, raising=False)
    with connected_processes(CPU) as here:
        assert here == world() == World(rank=0, size=1)
        assert here.is_main_process
        assert add_over_world(torch.tensor(3.0), here) == 3.0
        assert not torch.distributed.is_initialized()
        assert broadcast(lambda: 5) == 5
        assert all_reduce([2, 3]) == [2, 3]
        assert all_reduce_max(7) == 7
        assert current_world() == here
        require_rows("batch_size", 1)
    assert not is_secondary_rank()


def test_ranks_are_read_from_the_environment(monkeypatch):
    monkeypatch.setenv("RANK", "3")
    monkeypatch.setenv("WORLD_SIZE", "4")
    assert world() == World(rank=3, size=4)
    assert not world().is_main_process
    assert is_secondary_rank()
    assert current_world() == World()  # nobody has connected them
    assert list(range(10))[world().share] == [3, 7]


@pytest.mark.parametrize(
    ("rank", "size", "message"),
    [
        ("1", "1", r"^RANK=1 WORLD_SIZE=1: RANK does not fit WORLD_SIZE: run `unset RANK WORLD_SIZE LOCAL_RANK`"),
        ("1", None, "^RANK=1: RANK does not fit WORLD_SIZE"),
        (None, "2", "^WORLD_SIZE=2: RANK does not fit WORLD_SIZE"),
        ("-1", "2", "^RANK=-1 WORLD_SIZE=2: RANK does not fit"),
        ("0", "0", "^RANK=0 WORLD_SIZE=0: RANK does not fit"),
        ("one", "2", "^RANK='one': is not an integer: run `unset"),
        ("0", "", "^WORLD_SIZE='': is not an integer"),
        ("0", "9" * 5000, "^WORLD_SIZE='9{40}': is not an integer"),
    ],
)
def test_contradicting_variables_are_refused(monkeypatch, rank, size, message):
    for name, value in (("RANK", rank), ("WORLD_SIZE", size)):
        monkeypatch.delenv(name, raising=False)
        if value is not None:
            monkeypatch.setenv(name, value)
    with pytest.raises(SettingsError, match=message):
        world()
    assert not is_secondary_rank()


@pytest.mark.parametrize(
    ("variables", "message"),
    [
        ({}, "^RANK=1 WORLD_SIZE=2: several processes need MASTER_ADDR and MASTER_PORT, too: start them with torchrun"),
        (
            {"MASTER_ADDR": "127.0.0.1", "MASTER_PORT": "1"},
            "^127.0.0.1:1: rank 1 cannot connect to rank 0 .*start all",
        ),
        ({"KORBERT_WAIT_FOR_RANKS": "soon"}, "^KORBERT_WAIT_FOR_RANKS='soon': is not an integer"),
        (
            {"RANK": "0", "WORLD_SIZE": "3", "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": "{port}"},
            r"^2 of 3 processes did not come within 1 s \(rank 1, 2\): look at how they were started",
        ),
    ],
)
def test_processes_that_do_not_connect(monkeypatch, free_port, variables, message):
    variables = {"RANK": "1", "WORLD_SIZE": "2", WAIT: "1", **variables}
    for name in ("MASTER_ADDR", "MASTER_PORT", "TORCHELASTIC_USE_AGENT_STORE"):
        monkeypatch.delenv(name, raising=False)
    for name, value in variables.items():
        monkeypatch.setenv(name, value.format(port=free_port))
    with pytest.raises(SettingsError, match=message), connected_processes(CPU):
        pass
    assert not torch.distributed.is_initialized()


def test_an_error_is_reported_by_one_process():
    """By the first that asks; a closed connection is the error only if no process has reported another."""
    store = HashStore()
    closed = RuntimeError("[gloo/transport/tcp/pair.cc:553] Connection closed by peer")
    own = ValueError("bad")
    assert _reported_once(own, World(1, 2), store) is own
    assert own.__notes__ == ["rank 1"]
    assert isinstance(_reported_once(closed, World(0, 2), store), EndedElsewhere)
    assert isinstance(_reported_once(ValueError("later"), World(0, 2), store), EndedElsewhere)
    told = _reported_once(closed, World(0, 2), HashStore())
    assert isinstance(told, ProcessLost)
    assert str(told).startswith("one of 2 processes ended without an error")
