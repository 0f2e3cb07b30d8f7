"""All optimizers of a run as one, and their state by parameter name."""

from collections.abc import Mapping

from torch import Tensor, nn

from korbert.training.optimizers.groups import parameter_groups
from korbert.training.optimizers.table import OPTIMIZERS
from korbert.training.settings import OptimizerSettings, PrecisionName

__all__ = ["Optimizers"]


class Optimizers:
    """All optimizers of a model: one `torch.optim.Optimizer` per kind with parameters. Each group keeps its rate.

    precision: fp32 or bf16, as the forward passes have it.
    """

    def __init__(self, model: nn.Module, settings: OptimizerSettings, precision: PrecisionName) -> None:
        self._names = {parameter: name for name, parameter in model.named_parameters()}
        self._parts = [
            OPTIMIZERS[kind].build(groups, settings, precision)
            for kind, groups in parameter_groups(model, settings).items()
        ]
        self._peak = self._rate = settings.learning_rate

    def set_rates(self, share: float) -> None:
        """Sets each group's rate to that share of its peak."""
        self._rate = self._peak * share
        for part in self._parts:
            for group in part.param_groups:
                group["lr"] = group["peak"] * share

    def rates(self) -> dict[str, float]:
        """ "learning_rate", and "learning_rate/<pattern>" for each group of the settings with another rate."""
        own = {
            f"learning_rate/{group['pattern']}": float(group["lr"])
            for part in self._parts
            for group in part.param_groups
            if group["peak"] != self._peak
        }
        return {"learning_rate": self._rate, **own}

    def step(self) -> None:
        """Applies the gradients, and clears them."""
        for part in self._parts:
            part.step()
            part.zero_grad(set_to_none=True)

    def state(self) -> dict[str, Tensor]:
        """All state tensors by `<parameter>/<key>`, for instance `encoder.final_norm.weight/exp_avg`."""
        return {
            f"{name}/{key}": value
            for parameter, name in self._names.items()
            for part in self._parts
            for key, value in part.state.get(parameter, {}).items()
        }

    def restore(self, state: Mapping[str, Tensor]) -> None:
        """Takes over what `state` returned. Each optimizer puts its tensors on the device where it needs them."""
        for part in self._parts:
            parameters = [parameter for group in part.param_groups for parameter in group["params"]]
            numbers = {self._names[parameter]: number for number, parameter in enumerate(parameters)}
            own: dict[int, dict[str, Tensor]] = {}
            for full_name, value in state.items():
                name, key = full_name.rsplit("/", 1)
                if name in numbers:
                    own.setdefault(numbers[name], {})[key] = value
            part.load_state_dict({**part.state_dict(), "state": own})
