"""What a figure is: something that runs, and says what it measured, what the paper claims, and how to draw it."""

from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any, NamedTuple, Protocol, TypeVar, runtime_checkable

import numpy as np

from maxplore import checks
from maxplore.errors import InputError

PRESETS = ("fast", "paper", "smoke")
"""Sizes: a laptop's, the paper's, and one that only shows that everything works."""

Say = Callable[[str], None]
Shares = Mapping[str, np.ndarray]
"""For each line of a figure, the explored share `[seeds, episodes]`."""


Curve = dict[str, list[Any]]
"""x, median, p25 and p75."""


@dataclass(frozen=True)
class Asked:
    """How large a figure is to be; None is as large as it is by itself, in that preset."""

    preset: str = "fast"
    seeds: int | None = None
    episodes: int | None = None
    steps: int | None = None
    methods: tuple[str, ...] | None = None
    configs: int | None = None
    """Of a grid: settings of each method, 0 for all."""

    def __post_init__(self) -> None:
        if self.preset not in PRESETS:
            raise InputError(f"--preset is {self.preset!r}, expected one of {', '.join(PRESETS)}")
        for name in ("seeds", "episodes", "steps"):
            if getattr(self, name) is not None:
                checks.counted(f"--{name}", getattr(self, name))
        if self.configs is not None and self.configs < 0:
            raise InputError(f"--configs is {self.configs}, expected at least 1, or 0 for all")

    @property
    def given(self) -> dict[str, Any]:
        """What was said, besides the preset."""
        return {name: value for name, value in asdict(self).items() if name != "preset" and value is not None}


class Verdict(NamedTuple):
    """What was found of a claim."""

    value: float
    holds: bool
    interval: tuple[float, float] | None = None
    """Between which two the value lies with a chance of 95%, where that is reckoned."""


@dataclass(frozen=True)
class Judge:
    """Finds the value of a claim in what was measured, and whether it holds."""

    of: Callable[[Any], tuple[Any, ...]]
    """The parts of a `Verdict`."""
    holds_if: str
    """What it takes, with the tolerance: in words, for tables."""
    lines: tuple[str, ...] = ()
    """Lines of the figure that it looks at."""
    at: int | None = None
    """Episodes, or steps, that the claim is about; None is however many there are."""


@dataclass(frozen=True)
class Claim:
    """What the paper says, and how to judge it: a measured value and whether the claim holds."""

    claim: str
    paper: str
    judge: Judge

    def judged(self, measured: Any) -> dict[str, Any]:
        verdict = Verdict(*self.judge.of(measured))
        if np.isnan(verdict.value):
            return self.left("what was measured is no number")
        # JSON has no infinity: a share never reached is null.
        shown = round(verdict.value, 4) if np.isfinite(verdict.value) else None
        told: dict[str, Any] = {**self._stated, "measured": shown, "holds": bool(verdict.holds)}
        if verdict.interval is not None:
            told["interval"] = [round(end, 4) for end in verdict.interval]
        return told

    def left(self, why: str) -> dict[str, Any]:
        """That it was not judged."""
        return {**self._stated, "measured": None, "holds": None, "why": why}

    @property
    def _stated(self) -> dict[str, Any]:
        return {"claim": self.claim, "paper": self.paper, "holds_if": self.judge.holds_if}


class Measured(NamedTuple):
    """The recorded numbers of a figure, ready for JSON: all that its plot reads."""

    config: dict[str, str]
    claims: list[dict[str, Any]]
    """Judged, or left with a reason."""
    curves: dict[str, Curve]
    """By line."""
    extra: dict[str, Any] = {}  # noqa: RUF012  (never changed)
    """What the curves do not say: raw numbers of every seed, graphs, tables."""


@runtime_checkable
class Experiment(Protocol):
    """A figure of the paper, in some size."""

    @property
    def title(self) -> str: ...

    @property
    def seeds(self) -> int: ...

    @property
    def claims(self) -> tuple[Claim, ...]:
        """All that it states, whatever of it a size lets one judge."""
        ...

    def at(self, asked: Asked) -> "Experiment":
        """The same figure in another size; an `InputError` if it knows nothing of what is asked for."""
        ...

    def run(self, folder: Path, say: Say) -> Measured:
        """Do all the work. What takes hours keeps its parts in `folder`, and goes on from there."""
        ...

    def draw(self, summary: dict[str, Any]) -> Any:
        """The figure, from the recorded numbers alone."""
        ...


Figure = TypeVar("Figure")


def resized(figure: Figure, asked: Asked, own: tuple[str, ...]) -> Figure:
    """The figure with what was asked for in place of its own, which are fields of these names."""
    for name in asked.given:
        if name not in own:
            known = ", ".join(f"--{each}" for each in own)
            raise InputError(f"--{name} is no option of this figure, expected one of {known}: leave it out")
    return replace(figure, **asked.given)  # pyright: ignore[reportArgumentType, reportCallIssue, reportUnknownVariableType]


def judged(claims: tuple[Claim, ...], measured: Mapping[str, Any], length: int | None = None) -> list[dict[str, Any]]:
    """What is found of claims; of those about lines that were not measured, or another `length`, why they are left."""
    found: list[dict[str, Any]] = []
    for claim in claims:
        missing = [line for line in claim.judge.lines if line not in measured]
        if missing:
            found.append(claim.left(f"{', '.join(missing)} did not run"))
        elif claim.judge.at not in (None, length):
            found.append(claim.left(f"the figure goes to {length or 0:,}"))
        else:
            found.append(claim.judged(measured))
    return found


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
