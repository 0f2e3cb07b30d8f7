"""Actors of a Ray cluster as workers. An actor that dies is replaced; its unit is tried up to three times in all."""

import logging
import os
import queue
import sys
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager
from typing import Any, TypeVar

from pebble import ProcessExpired

from korbert.corpus.execution.processes import prepare
from korbert.errors import KorbertError
from korbert.messages import Message, argument
from korbert.system import needed_for

os.environ["RAY_USAGE_STATS_ENABLED"] = "0"  # before Ray is imported: nothing calls home

with needed_for("--runner ray"):
    import ray

from ray._private import services
from ray.exceptions import GetTimeoutError, RayError, RayTaskError

U = TypeVar("U")
R = TypeVar("R")

_TRIES = 3  # of a unit whose worker, or its machine, died
_MAX_FAILED_STARTS = 3  # of actors, in a row

_logger = logging.getLogger(__name__)


class _Worker:
    """The class of the actors."""

    def start(self, initializer: Callable[[], None] | None) -> None:
        prepare(initializer)

    def call(self, function: Callable[[U], R], unit: U) -> R:
        return function(unit)


_ACTOR: Any = ray.remote(num_cpus=1)(_Worker)


class Actors:
    """A pool of actors of one core each, and of as many threads, each of which waits for one unit at a time.

    gpus: GPUs of each actor.
    """

    def __init__(self, workers: int, initializer: Callable[[], None] | None, gpus: int = 0) -> None:
        self._initializer = initializer
        self._kind = _ACTOR.options(num_gpus=gpus)
        self._threads = ThreadPoolExecutor(workers, thread_name_prefix="actors")
        self._free: queue.SimpleQueue[Any] = queue.SimpleQueue()  # idle actors; None: the pool is stopped
        self._actors: set[Any] = set()
        self._failed_starts = 0
        self._stopped: Exception | None = None
        for _ in range(workers):
            threading.Thread(target=self._start, daemon=True).start()

    def run(self, function: Callable[[U], R], unit: U, seconds: float | None) -> "Future[R]":
        """Returns a future. Its exception is ProcessExpired if three workers died over the unit, one after another, and
        TimeoutError after `seconds`."""
        return self._threads.submit(self._run, function, unit, seconds)

    def _run(self, function: Callable[[U], R], unit: U, seconds: float | None) -> R:
        cause = ""
        for _ in range(_TRIES):
            actor = self._free.get()
            if actor is None:
                self._free.put(None)  # for the other threads
                raise self._stopped or BrokenProcessPool("the actors are stopped")
            try:
                result: R = ray.get(actor.call.remote(function, unit), timeout=seconds)
            except RayTaskError as error:
                self._free.put(actor)
                raise error.cause from error  # a cause tells its TimeoutError from ours
            except GetTimeoutError:
                self._replace(actor)
                raise TimeoutError("the unit took too long", seconds) from None
            except RayError as error:
                self._replace(actor)
                cause = _last_line(error)
                _logger.warning("a worker died, and its part is done again: %s", cause)
            else:
                self._free.put(actor)
                return result
        raise ProcessExpired(f"workers died {_TRIES} times over it: {cause}")  # type: ignore[no-untyped-call]

    def _replace(self, actor: Any) -> None:
        self._actors.discard(actor)
        ray.kill(actor)
        threading.Thread(target=self._start, daemon=True).start()

    def _start(self) -> None:
        """Starts an actor, and waits until it is ready."""
        while self._stopped is None:
            actor = self._kind.remote()
            self._actors.add(actor)
            try:
                ray.get(actor.start.remote(self._initializer))
            except RayTaskError as error:
                self.stop(error.cause)
            except RayError as error:
                self._actors.discard(actor)
                self._failed_starts += 1
                if self._failed_starts > _MAX_FAILED_STARTS:
                    self.stop(
                        KorbertError("actors end as soon as they start: {last_line}", last_line=_last_line(error))
                    )
            else:
                self._failed_starts = 0
                self._free.put(actor)
                return

    def stop(self, why: Exception) -> None:
        """Ends all actors. Units that wait for one fail with `why`."""
        self._stopped = self._stopped or why
        self._free.put(None)
        self._threads.shutdown(wait=False, cancel_futures=True)
        for actor in tuple(self._actors):
            ray.kill(actor)


@contextmanager
def actors(
    address: str | None, workers: int, initializer: Callable[[], None] | None, gpus: int = 0
) -> Iterator[Actors]:
    """Yields a pool of actors on the cluster at `address` or, without one, at RAY_ADDRESS.

    Without either, a cluster is started on this machine, and stays up.
    """
    address = address or os.environ.get("RAY_ADDRESS")
    if not ray.is_initialized():
        options: dict[str, Any] = {"logging_level": logging.WARNING, "log_to_driver": False}
        if not address:
            path = os.pathsep.join(path for path in sys.path if path)
            options |= {"num_cpus": workers, "include_dashboard": False, "_node_ip_address": "127.0.0.1"}
            options["runtime_env"] = {"env_vars": {"PYTHONPATH": path}}
        # Ray would replace 127.0.0.1 by the machine's network address, and listen on all interfaces.
        resolve = services.resolve_ip_for_localhost
        services.resolve_ip_for_localhost = lambda host: host
        try:
            ray.init(address or "local", **options)
        except (ConnectionError, ValueError, RuntimeError) as error:
            cause = str(error).splitlines()[0] if str(error) else repr(error)
            raise KorbertError(
                "no Ray cluster at {address}: {why}: check {option}",
                address=address or Message("this machine"),
                why=cause,
                option=argument("address"),
            ) from error
        finally:
            services.resolve_ip_for_localhost = resolve
    pool = Actors(workers, initializer, gpus)
    try:
        yield pool
    finally:
        pool.stop(BrokenProcessPool("the actors are stopped"))


def _last_line(error: Exception) -> str:
    """Returns the first sentence of the last line of Ray's message: the reason, which follows names and numbers."""
    return str(error).strip().splitlines()[-1].split(". ")[0].strip()
