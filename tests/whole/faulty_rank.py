"""One rank of a run under torchrun, with a fault: `faulty_rank.py FAULT RANK ARGUMENT...`, on the command's arguments.

The rank of that number
  absent       never comes;
  writes       must not write: each file that Python opens for writing, makes, moves or removes is an error;
  step-N       is killed in update N (0-based), or told to stop by SIGTERM: stop-N; error-N: raises;
  checkpoint   is killed while it writes a checkpoint, the second of its sitting;
  end          is killed behind the last step, before the model is written.
"""

import os
import signal
import sys
import time
from typing import Any

WRITING = ("os.mkdir", "os.rename", "os.remove", "os.rmdir", "os.truncate", "os.link", "os.symlink", "shutil.rmtree")


def refuse_to_write(event: str, arguments: tuple[Any, ...]) -> None:
    flags = arguments[2] if event == "open" else 0
    writes = event in WRITING or (isinstance(flags, int) and flags & (os.O_WRONLY | os.O_RDWR | os.O_CREAT))
    if writes and "artifacts" in str(arguments[0]):
        os.write(2, f"WRITES: {event} {arguments[:2]}\n".encode())
        os._exit(9)


def at_step(what: str, step: int) -> None:
    from korbert.training.updates import Updates

    update = Updates.update

    def faulty(self: Updates, number: int, micro_batches: Any) -> None:
        if number == step and what == "error":
            raise OSError(28, "No space left on device", "/far/away")
        if number == step:
            os.kill(os.getpid(), signal.SIGKILL if what == "step" else signal.SIGTERM)
        update(self, number, micro_batches)

    Updates.update = faulty  # type: ignore[method-assign]


def in_a_checkpoint() -> None:
    from korbert.training import checkpoints

    left = [None] * 4  # sync is called four times for each

    def sync(path: Any) -> None:
        if not left:
            os.kill(os.getpid(), signal.SIGKILL)
        left.pop()

    checkpoints.sync = sync


def at_the_end() -> None:
    import korbert.pipelines.stages.pretrain as stage

    def save_model(*_: Any, **__: Any) -> None:
        os.kill(os.getpid(), signal.SIGKILL)

    stage.save_model = save_model  # type: ignore[assignment]


def main() -> None:
    fault, rank, arguments = sys.argv[1], sys.argv[2], sys.argv[3:]
    if rank in (os.environ["RANK"], "all"):
        name, _, step = fault.partition("-")
        if name == "absent":
            time.sleep(60)
        elif name == "writes":
            sys.addaudithook(refuse_to_write)
        elif name == "checkpoint":
            in_a_checkpoint()
        elif name == "end":
            at_the_end()
        elif step:
            at_step(name, int(step))
    from korbert.pipelines.cli import run_command

    sys.exit(run_command(arguments))


if __name__ == "__main__":
    main()
