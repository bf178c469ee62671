"""An experiment on the Chain as data: which explorers, on which chains, how often, and what the paper says of it."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass

import numpy as np

from maxplore.explorers import (
    BootstrappedDqnExplorer,
    EbDqnExplorer,
    FiniteExplorer,
    FiniteMaxConfig,
    MaxExplorer,
    OracleExplorer,
    RandomExplorer,
)

Shares = Mapping[str, np.ndarray]
"""For each line of a figure, the explored share `[seeds, episodes]`."""


@dataclass(frozen=True)
class Line:
    """One curve: an explorer on chains of one kind."""

    explorer: FiniteExplorer
    length: int = 50
    stochastic_trap: bool = False
    at_once: int = 1
    """Seeds computed side by side: many for explorers of even pace, one for those that train until they are done."""


@dataclass(frozen=True)
class Claim:
    """What the paper says, and how to judge it: a measured value and whether the claim holds."""

    claim: str
    paper: str
    judge: Callable[[Shares], tuple[float, bool]]


@dataclass(frozen=True)
class Experiment:
    """A figure: its lines, how many seeds and episodes, and its claims."""

    title: str
    lines: Mapping[str, Line]
    seeds: int
    episodes: int
    claims: tuple[Claim, ...]


def episodes_needed(shares: np.ndarray, share: float = 1.0) -> np.ndarray:
    """Episodes until that share was explored, for each seed; infinite if it never was."""
    reached = shares >= share - 1e-6
    return np.where(reached.any(axis=1), reached.argmax(axis=1) + 1.0, np.inf)


def median_needed(line: str) -> Callable[[Shares], float]:
    return lambda shares: float(np.median(episodes_needed(shares[line])))


def _at_most(line: str, limit: float, quantile: float = 0.5) -> Callable[[Shares], tuple[float, bool]]:
    def judge(shares: Shares) -> tuple[float, bool]:
        measured = float(np.quantile(episodes_needed(shares[line]), quantile, method="higher"))
        return measured, measured <= limit

    return judge


def _about(line: str, share: float, tolerance: float) -> Callable[[Shares], tuple[float, bool]]:
    def judge(shares: Shares) -> tuple[float, bool]:
        measured = float(np.median(shares[line][:, -1]))
        return measured, abs(measured - share) <= tolerance

    return judge


def _within_of(line: str, other: str, episodes: float) -> Callable[[Shares], tuple[float, bool]]:
    def judge(shares: Shares) -> tuple[float, bool]:
        extra = median_needed(line)(shares) - median_needed(other)(shares)
        return extra, extra <= episodes

    return judge


LENGTHS = tuple(range(20, 101, 5))
NO_WARM_UP = MaxExplorer(FiniteMaxConfig(warm_up=0))

EXPERIMENTS: dict[str, Experiment] = {
    "chain": Experiment(
        "Chain of 50 states (fig. 2b)",
        {
            "MAX": Line(MaxExplorer()),
            "MAX, no warm-up": Line(NO_WARM_UP),
            "EB-DQN": Line(EbDqnExplorer(), at_once=25),
            "Bootstrapped DQN": Line(BootstrappedDqnExplorer(), at_once=25),
            "random": Line(RandomExplorer(), at_once=100),
            "oracle": Line(OracleExplorer(), at_once=100),
        },
        seeds=100,
        episodes=60,
        claims=(
            Claim("MAX explores everything: median of episodes", "about 15", _at_most("MAX", 15.0)),
            Claim("our target for MAX: median of episodes at most 7.5", "-", _at_most("MAX", 7.5)),
            Claim("our target for MAX: 75th percentile at most 8", "-", _at_most("MAX", 8.0, 0.75)),
            Claim("no seed of MAX is stuck: most episodes of any seed", "-", _at_most("MAX", 60.0, 1.0)),
            Claim("EB-DQN after 60 episodes: median share", "about 0.4", _about("EB-DQN", 0.4, 0.05)),
            Claim(
                "Bootstrapped DQN after 60 episodes: median share", "about 0.4", _about("Bootstrapped DQN", 0.4, 0.05)
            ),
        ),
    ),
    "chain-lengths": Experiment(
        "Chains of 20 to 100 states (fig. 2c)",
        {f"MAX, {length} states": Line(MaxExplorer(), length) for length in LENGTHS}
        | {f"oracle, {length} states": Line(OracleExplorer(), length, at_once=5) for length in LENGTHS},
        seeds=5,
        episodes=20,
        claims=tuple(
            Claim(
                f"length {length}: episodes that MAX needs more than the oracle, at most 2",
                "explored",
                _within_of(f"MAX, {length} states", f"oracle, {length} states", 2.0),
            )
            for length in LENGTHS
        ),
    ),
    "chain-trap": Experiment(
        "Chain with a stochastic trap (fig. 2d)",
        {
            "MAX": Line(MaxExplorer()),
            "MAX, trap": Line(MaxExplorer(), stochastic_trap=True),
            "oracle, trap": Line(OracleExplorer(), stochastic_trap=True, at_once=20),
        },
        seeds=20,
        episodes=20,
        claims=(
            Claim(
                "MAX explores everything despite the trap: most episodes",
                "slowed",
                _at_most("MAX, trap", 20.0, 1.0),
            ),
            Claim(
                "our target: at most 1 episode more with the trap (median)", "-", _within_of("MAX, trap", "MAX", 1.0)
            ),
        ),
    ),
}
