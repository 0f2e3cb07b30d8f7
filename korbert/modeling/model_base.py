"""What all models have in common: what a folder records of their head, and what they are in `transformers`."""

from typing import ClassVar

from torch import nn

from korbert.system import JsonObject


class AnyModel(nn.Module):
    """An encoder with or without a head.

    kind: of the saved folder. saved: the constructor's arguments that are saved with the config. exported: how the
    name of its class in `transformers` ends. pipeline: its pipeline there, "" for none. not_exported: why no class
    there computes the same.
    """

    kind: ClassVar[str]
    saved: ClassVar[tuple[str, ...]] = ()
    exported: ClassVar[str] = ""
    pipeline: ClassVar[str] = ""
    not_exported: ClassVar[str] = ""

    def head_settings(self) -> JsonObject:
        """Constructor arguments besides the encoder's config, as JSON has them."""
        values = {name: getattr(self, name) for name in self.saved}
        return {name: list(value) if isinstance(value, tuple) else value for name, value in values.items()}
