"""The `korbert` command. Errors are printed in one line, with the exit codes of korbert.errors; 130 after Ctrl-C."""

import errno
import gettext
import os
import re
import signal
import sys
import time
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from itertools import chain, pairwise
from pathlib import Path
from typing import NoReturn

import click

from korbert import __version__
from korbert.errors import EndedElsewhere, KorbertError, ProcessLost
from korbert.messages import LOCALES, NAMES, VARIABLE, Message, in_language, join_messages, language
from korbert.pipelines.commands import labels, models, scoring, serving, stages, tasks, vectors
from korbert.pipelines.stages.table import STAGES
from korbert.system import (
    Interrupted,
    bound_spinning,
    handled_signals,
    in_one_line,
    is_secondary_rank,
    needed_for,
    say,
    world,
)

_HELP = {"help_option_names": ["-h", "--help"], "max_content_width": 110, "show_default": True}
_FULL = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)
_SECONDS_FOR_FIRST = 10  # time for torchrun to end the other ranks after rank 0 has failed
_RESUMING = {  # keep finished work; embed and predict do if they have written parts
    "distill", "finetune", "index", "layers", "questions", "run", "tasks", *STAGES,
}  # fmt: skip


def main() -> NoReturn:
    """Entry point of the console script."""
    bound_spinning()
    sys.exit(run_command(sys.argv[1:]))


def run_command(arguments: list[str]) -> int:
    """Runs one command line; returns the exit code."""
    debug = "--debug" in arguments
    options = arguments[: arguments.index("--")] if "--" in arguments else arguments  # what follows is text
    position = options.index("--lang") if "--lang" in options else len(arguments)
    if arguments[position + 1 : position + 2] in (["en"], ["ko"]):  # before click, which handles --help first
        os.environ[VARIABLE] = arguments[position + 1]
        arguments = arguments[:position] + arguments[position + 2 :]
    command = next(iter(arguments), "")
    with handled_signals(raising=True) as arrived, _at_the_command_line():
        try:
            with needed_for(f"korbert {command}".strip()):
                if is_secondary_rank():
                    _run_in_another_rank(arguments, command)
                else:
                    cli.main(arguments or ["--help"], prog_name="korbert", standalone_mode=False)
        except EndedElsewhere as error:
            return error.exit_code
        except click.exceptions.Exit as leave:
            return leave.exit_code
        except click.ClickException as error:
            error.message = in_one_line(in_language(error.message))  # type: ignore[misc]  # final to mypy alone
            error.show()
            return error.exit_code
        except (KeyboardInterrupt, Exception) as error:
            cause = (error.__cause__ or error) if isinstance(error, click.Abort) else error
            if (number := arrived()) or isinstance(cause, KeyboardInterrupt | click.Abort):
                return _leave_interrupted(cause, number or signal.SIGINT, resumes=_resumes(command, arguments))
            if isinstance(cause, BrokenPipeError):
                sys.stderr.close()  # keeps Python from complaining about standard output at exit
                return 1
            if debug:
                raise
            return _leave_failed(cause, resumes=_resumes(command, arguments))
    return 0


@contextmanager
def _at_the_command_line() -> Iterator[None]:
    """Makes messages name options instead of arguments, and click speak the user's language."""
    # In the environment, which worker processes inherit.
    os.environ[NAMES] = "options"
    os.environ["LANGUAGE"] = language()
    gettext.bindtextdomain("click", LOCALES)
    domain = gettext.textdomain()
    gettext.textdomain("click")
    try:
        yield
    finally:
        gettext.textdomain(domain)
        del os.environ[NAMES]


def _run_in_another_rank(arguments: list[str], command: str) -> None:
    """Runs the command in a rank other than 0. Errors that also occur in rank 0 are reported by rank 0.

    torchrun ends all processes as soon as one fails, even if rank 0 has not reported its error yet. Commands that do
    not train run in rank 0 alone.
    """
    if command not in ("run", "tasks", "finetune") and not (command in STAGES and STAGES[command].trains):
        return
    try:
        cli.main(arguments, prog_name="korbert", standalone_mode=False)
    except (EndedElsewhere, ProcessLost, click.Abort, click.exceptions.Exit):  # Abort: a signal
        raise
    except Exception as error:
        if not getattr(error, "__notes__", ()):  # with notes, the processes were connected and this one reports
            time.sleep(_SECONDS_FOR_FIRST)
        say(f"korbert: of {world().size} processes, rank {world().rank} failed:", err=True)
        raise


def _resumes(command: str, arguments: list[str]) -> bool:
    """Whether the same command would go on from finished work."""
    if command not in ("embed", "predict"):
        return command in _RESUMING
    words = chain.from_iterable(word.split("=", 1) if word.startswith("--output=") else [word] for word in arguments)
    outputs = [word for option, word in pairwise(words) if option == "--output"]
    with suppress(OSError):  # of what is too long to be a name
        return any(any(Path(f"{Path(output)}.partial").glob("part-*")) for output in outputs)
    return False


def _leave_interrupted(error: BaseException, number: signal.Signals, *, resumes: bool) -> int:
    """Returns the exit code that shells use: 130 after Ctrl-C, 143 after SIGTERM. Rank 0 also reports the signal."""
    if is_secondary_rank():
        return 128 + number
    saved = ""
    if isinstance(error, Interrupted):
        number = error.number
        saved = error.saved
    ending = Message("interrupted") if number == signal.SIGINT else Message("ended by {signal}", signal=number.name)
    if saved:
        outcome = Message("{saved}; the same command resumes there", saved=saved)
    elif resumes:
        outcome = Message("finished work is kept; the same command resumes")
    else:
        outcome = Message("the same command starts over")
    say(join_messages(["korbert", ending, outcome], ": "), err=True)
    return 128 + number


def _leave_failed(error: BaseException, *, resumes: bool) -> int:
    """Reports an error in one line and returns the exit code."""
    code = 1
    if isinstance(error, KorbertError):
        what = in_language(error.message)
        code = error.exit_code
    elif isinstance(error, OSError):
        parts = [str(error.filename or Message("the disk")), error.strerror or str(error)]
        if error.errno in _FULL and resumes:
            parts.append(Message("make room, then run the same command: it resumes"))
        elif error.errno in _FULL:
            parts.append(Message("make room, then run the same command: it starts over"))
        what = in_language(join_messages(parts, ": "))
    else:
        words = " ".join(str(error).split())
        what = in_language(
            Message(
                "{kind}: {words}: the same command with --debug shows where", kind=type(error).__name__, words=words
            )
        )
    say(f"korbert: {in_one_line(what)}", err=True)
    return code


GROUPS = {  # in the order of use
    "From raw text": ("new", "plan", "run", *STAGES, "tasks", "status", "report"),
    "Tasks": (
        *("label", "suggest", "check", "finetune", "evaluate"),
        *("predict", "compare", "questions", "submit", "score"),
    ),
    "Models": ("models", "serve", "fill", "export", "import", "pack"),
    "Search": ("embed", "index", "similar", "search-eval", "pairs", "negatives", "distill"),
    "Inside a model": ("tokenize", "look", "layers"),
}


def _said(text: str) -> str:
    """Translates a text of the help into the user's language."""
    return in_language(Message(text))


class _Formatter(click.HelpFormatter):
    """Writes help in the user's language. Each paragraph, each option and its [default: ..] is a message.

    click wraps lines by characters, and a Hangul syllable is two columns wide: a filler follows it until lines are
    wrapped.
    """

    _FILLER = "\ufeff"

    def write_heading(self, heading: str) -> None:
        super().write_heading(_said(heading))

    def write_text(self, text: str) -> None:
        paragraphs = [paragraph.split("\n") for paragraph in text.split("\n\n")]
        texts = [_said(" ".join(lines)) if lines[0] != "\b" else "\n".join(map(_said, lines)) for lines in paragraphs]
        super().write_text(self._wide("\n\n".join(texts)))

    def write_dl(self, rows: Iterable[tuple[str, str]], col_max: int = 30, col_spacing: int = 2) -> None:
        translated = [(term, "  ".join(map(_said, about.split("  ")))) for term, about in rows]
        super().write_dl([(term, self._wide(about)) for term, about in translated], col_max, col_spacing)

    def _wide(self, text: str) -> str:
        return re.sub("[가-힣]", rf"\g<0>{self._FILLER}", text)

    def getvalue(self) -> str:
        return super().getvalue().replace(self._FILLER, "")


class _Context(click.Context):
    formatter_class = _Formatter


class _Grouped(click.Group):
    """Lists its commands in groups."""

    context_class = _Context

    def list_commands(self, context: click.Context) -> list[str]:
        return [name for names in GROUPS.values() for name in names]

    def format_commands(self, context: click.Context, formatter: click.HelpFormatter) -> None:
        width = max(map(len, self.commands))
        for title, names in GROUPS.items():
            with formatter.section(title):
                formatter.write_dl([(f"{name:<{width}}", summary(self.commands[name])) for name in names])


def summary(command: click.Command) -> str:
    """The first sentence of a command's help."""
    return command.get_short_help_str(limit=1_000)


@click.group(cls=_Grouped, context_settings=_HELP)
@click.version_option(__version__, prog_name="korbert")
def cli() -> None:
    """Korean BERT with morpheme tokenization, from raw text to NSMC and KorQuAD.

    RECIPE is a TOML file, or the name of a shipped one (demo, mini, small, base, ..). `korbert run demo` is the place
    to start.
    """


for _module in (stages, tasks, scoring, labels, models, serving, vectors):
    for _command in _module.COMMANDS:
        _command.context_class = _Context
        cli.add_command(_command)
