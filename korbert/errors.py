"""Errors, by what the user has to fix. Every message names the file, the place, what is there, and what to do.

KorbertError
├── SettingsError     a recipe, an option or an argument is wrong             exit code 2
├── ArtifactError     an artifact is absent, stale, changed or in use         exit code 2
├── CorpusError       text or task data cannot be used as it is               exit code 2
│   └── PartlyFailed  some records have errors, which the results name        exit code 1
├── ModelError        a model or tokenizer cannot be loaded, paired, trained  exit code 2
│   └── ModelFailed   a model, a server or a program failed at its work       exit code 1
│       └── ProcessLost  another process of the run was killed                exit code 1
└── EndedElsewhere    another process of the run failed and reports why       exit code 1

The exit code is 2 for what the user can mend before anything begins. Once a stage has begun, text and models that stop
it are failures: code 1.
"""

from korbert.messages import Message
from korbert.system import shorten


class KorbertError(Exception):
    """An error that the user can fix. The command line prints only its message and exits with `exit_code`.

    Examples:
        >>> try:
        ...     korbert.load("korbert-mono")
        ... except korbert.KorbertError as error:
        ...     print(error)
        korbert-mono: no such folder: did you mean korbert-mini, which comes with korbert?
    """

    exit_code = 2

    def __init__(self, template: str, /, **values: object) -> None:
        """template, values: those of a message. A template that is a message already is taken as it is."""
        self.message = template if isinstance(template, Message) else Message(template, **values)
        super().__init__(self.message)

    def __str__(self) -> str:
        return shorten(str(self.message))


class SettingsError(KorbertError):
    """An invalid setting, option or argument.

    Examples:
        >>> korbert.run("mine.toml", settings={"vocab.sise": 8_000})
        Traceback (most recent call last):
        korbert.errors.SettingsError: mine.toml: vocab.sise: no such key (did you mean size?): ...
    """


class ArtifactError(KorbertError):
    """An artifact that is absent, stale, changed, or being written by another run.

    Examples:
        >>> korbert.Finetuned.open("nowhere")
        Traceback (most recent call last):
        korbert.errors.ArtifactError: nowhere: no stage.json in it, so there is nothing to report: run the stage first
    """


class CorpusError(KorbertError):
    """Text or task data that cannot be read or used as it is.

    Examples:
        >>> korbert.finetune("korbert-mini", "my.cvs")
        Traceback (most recent call last):
        korbert.errors.CorpusError: my.cvs: no such file: did you mean my.csv?
    """


class PartlyFailed(CorpusError):
    """Some records of a file have errors, which its results name."""

    exit_code = 1


class ModelError(KorbertError):
    """A model or a tokenizer that cannot be loaded, paired or trained.

    Examples:
        >>> korbert.load("korbert-mini").predict("정말 좋다")
        Traceback (most recent call last):
        korbert.errors.ModelError: korbert-mini: is a pretraining model: it can fill and embed; predictions need ...
    """


class ModelFailed(ModelError):
    """A model whose numbers are not finite, or a server or a program that failed at its work."""

    exit_code = 1


class ProcessLost(ModelFailed):
    """Another process of the same run ended without an error, as when it is killed."""


class EndedElsewhere(KorbertError):
    """Another process of the same run failed and reports why. This one ends silently."""

    exit_code = 1
