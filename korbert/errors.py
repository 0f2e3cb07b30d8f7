"""Errors, by what the user has to fix. Every message names the file, the place, what is there, and what to do.

KorbertError
├── SettingsError   a recipe, an option or an argument is wrong             exit code 2
├── ArtifactError   an artifact is absent, stale, changed or in use         exit code 2
├── CorpusError     text or task data cannot be used as it is               exit code 1
├── ModelError      a model or tokenizer cannot be loaded, paired, trained  exit code 1
└── EndedElsewhere  another process of the run failed and reports why       exit code 1
"""


class KorbertError(Exception):
    """An error that the user can fix. The command line prints only its message and exits with `exit_code`."""

    exit_code = 1


class SettingsError(KorbertError):
    """An invalid setting, option or argument."""

    exit_code = 2


class ArtifactError(KorbertError):
    """An artifact that is absent, stale, changed, or being written by another run."""

    exit_code = 2


class CorpusError(KorbertError):
    """Text or task data that cannot be read or used as it is."""


class ModelError(KorbertError):
    """A model or a tokenizer that cannot be loaded, paired or trained."""


class EndedElsewhere(KorbertError):
    """Another process of the same run failed and reports why. This one ends silently."""
