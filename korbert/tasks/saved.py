"""The settings that a model folder keeps in `task` of config.json, parsed by the classes that wrote them."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any, TypeVar

from pydantic import BaseModel, Field, ValidationError

from korbert.errors import ModelError
from korbert.folders import model_folder

__all__ = ["Lengths", "of_config"]

_Settings = TypeVar("_Settings", bound=BaseModel)


class Lengths(BaseModel, frozen=True, strict=True):
    """The entries of `task` that models read which have no other: the kind's are read with the kind.

    max_length: pieces of a text or window, special tokens included; None: the model's positions. stride: pieces that
    windows share; None: a quarter of them.
    """

    max_length: int | None = Field(None, ge=3)
    stride: int | None = Field(None, ge=0)


def of_config(kind: type[_Settings], task: Mapping[str, Any], place: str | Path) -> _Settings:
    """Parses `task` of a model's config.json. ModelError, with file and field, if it is invalid.

    place: the model's folder, or the scores.json of an artifact that holds the task, too.
    """
    try:
        return kind.model_validate(task)
    except (ValidationError, ArithmeticError) as error:
        first = error.errors()[0] if isinstance(error, ValidationError) else {"loc": (), "msg": str(error)}
        field = ".".join(map(str, ("task", *first["loc"])))
        file, remedy = model_folder(place) / "config.json", "put the file back as it was written"
        if Path(place).suffix == ".json":
            file, remedy = Path(place), "rebuild this artifact with --rebuild"
        raise ModelError(f"{file}: {field}: {first['msg']}: {remedy}".replace("\n", " ")) from None
