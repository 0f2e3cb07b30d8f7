"""The `korbert` command. It prints what went wrong in one line and leaves with 2 (misuse, refusal, drift), 1 or 130."""

import errno
import os
import sys
from typing import NoReturn

import click

from korbert import __version__
from korbert.errors import KorbertError
from pipelines.commands import models, stages

_FULL = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)


def main() -> NoReturn:
    """Entry point of the console script."""
    sys.exit(run_command(sys.argv[1:]))


def run_command(arguments: list[str]) -> int:
    """Runs one command line; returns the exit code."""
    debug = "--debug" in arguments
    try:
        cli.main(arguments, prog_name="korbert", standalone_mode=False)
    except click.exceptions.Exit as leave:
        return leave.exit_code
    except click.ClickException as error:
        error.show()
        return error.exit_code
    except (KeyboardInterrupt, click.Abort):
        click.echo("korbert: interrupted: nothing finished is lost; the same command goes on from here", err=True)
        return 130
    except BrokenPipeError:
        return _leave_pipe()
    except KorbertError as error:
        if debug:
            raise
        click.echo(f"korbert: {error}", err=True)
        return error.exit_code
    except OSError as error:
        if debug:
            raise
        click.echo(f"korbert: {_os_error(error)}", err=True)
        return 1
    except Exception as error:
        if debug:
            raise
        said = " ".join(str(error).split())
        click.echo(f"korbert: {type(error).__name__}: {said}: the same command with --debug shows where", err=True)
        return 1
    return 0


def _leave_pipe() -> int:
    sys.stderr.close()  # keeps Python from complaining about standard output at exit
    return 1


def _os_error(error: OSError) -> str:
    place = error.filename or "the disk"
    if error.errno in _FULL:
        said = error.strerror or os.strerror(error.errno)
        return f"{place}: {said}: make room, then run the same command: it goes on behind what is finished"
    return f"{place}: {error.strerror or error}"


class _InOrder(click.Group):
    """Lists its commands in the order in which people meet them."""

    def list_commands(self, context: click.Context) -> list[str]:
        return list(self.commands)


@click.group(cls=_InOrder, context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 110})
@click.version_option(__version__, prog_name="korbert")
def cli() -> None:
    """Korean BERT with morpheme tokenization, from raw text to NSMC and KorQuAD.

    RECIPE is a TOML file, or the name of a shipped one (demo, small). `korbert run demo` is the place to start.
    """


for _command in (*stages.COMMANDS, *models.COMMANDS):
    cli.add_command(_command)
