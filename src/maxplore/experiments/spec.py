"""What a figure is: something that runs, and says what it measured, what the paper claims, and how to draw it."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple, Protocol

import numpy as np

Say = Callable[[str], None]
Shares = Mapping[str, np.ndarray]
"""For each line of a figure, the explored share `[seeds, episodes]`."""


Curve = dict[str, list[Any]]
"""x, median, p25 and p75."""


@dataclass(frozen=True)
class Claim:
    """What the paper says, and how to judge it: a measured value and whether the claim holds."""

    claim: str
    paper: str
    judge: Callable[[Any], tuple[float, bool]]

    def judged(self, measured: Any) -> dict[str, Any]:
        value, holds = self.judge(measured)
        # JSON has no infinity: a share never reached is null.
        shown = round(value, 4) if np.isfinite(value) else None
        return {"claim": self.claim, "paper": self.paper, "measured": shown, "holds": bool(holds)}


class Measured(NamedTuple):
    """The recorded numbers of a figure, ready for JSON: all that its plot reads."""

    config: dict[str, str]
    claims: list[dict[str, Any]]
    curves: dict[str, Curve]
    """By line."""
    extra: dict[str, Any] = {}  # noqa: RUF012  (never changed)
    """What the curves do not say: raw numbers of every seed, graphs, tables."""


class Experiment(Protocol):
    """A figure of the paper."""

    @property
    def title(self) -> str: ...

    @property
    def seeds(self) -> int: ...

    @property
    def episodes(self) -> int: ...

    def run(self, seeds: int, episodes: int, folder: Path, say: Say) -> Measured:
        """Do all the work. What takes hours keeps its parts in `folder`, and goes on from there."""
        ...

    def draw(self, summary: dict[str, Any]) -> Any:
        """The figure, from the recorded numbers alone."""
        ...


def quartiles(values: np.ndarray) -> Curve:
    """Median and quartiles over seeds, `[seeds, episodes]`, as a curve."""
    quantiles = (("median", 0.5), ("p25", 0.25), ("p75", 0.75))
    return {
        "x": list(range(1, values.shape[1] + 1)),
        **{name: np.quantile(values, q, axis=0).round(4).tolist() for name, q in quantiles},
    }


def episodes_needed(shares: np.ndarray, share: float = 1.0) -> np.ndarray:
    """Episodes until that share was explored, for each seed; infinite if it never was."""
    reached = shares >= share - 1e-6
    return np.where(reached.any(axis=1), reached.argmax(axis=1) + 1.0, np.inf)
