"""A run's numbers on Weights & Biases."""

import importlib
from collections.abc import Mapping
from typing import Any

from maxplore.errors import InputError


def check_wandb() -> Any:
    """The package, or an `InputError` if it is not there."""
    try:
        return importlib.import_module("wandb")
    except ImportError as error:
        raise InputError(f"wandb cannot be imported ({error}): pip install maxplore[wandb]") from error


class Wandb:
    """A run there. With the `resume_id` of an earlier one it goes on where that left off."""

    def __init__(self, project: str, name: str, config: Mapping[str, Any], *, resume_id: str) -> None:
        wandb = check_wandb()
        try:
            self._run = wandb.init(project=project, name=name, config=dict(config), id=resume_id, resume="allow")
        except Exception as error:  # no key, no network, a name that it refuses
            raise InputError(
                f"wandb does not start ({error}): try `wandb login`, or set WANDB_MODE=offline to keep all on this disk"
            ) from error

    def write(self, step: int, values: Mapping[str, float]) -> None:
        """Numbers by name at a step. Steps only ever grow: wandb passes over what is earlier than it has already."""
        self._run.log(dict(values), step=step)

    def close(self) -> None:
        """Done with; waits until everything is sent."""
        self._run.finish()

    def __enter__(self) -> "Wandb":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()
