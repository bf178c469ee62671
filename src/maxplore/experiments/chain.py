"""The figures of section 4.1 and appendix C: all that the paper shows of the Chain."""

from dataclasses import replace

import numpy as np

from maxplore.experiments.behaviour import Behaviour
from maxplore.experiments.exploration import Exploration, Line
from maxplore.experiments.grid import Grid
from maxplore.experiments.spec import Claim, Experiment, Judge, Shares, episodes_needed
from maxplore.explorers import (
    PAPER_MAX,
    BootstrappedDqnExplorer,
    EbDqnExplorer,
    FiniteMaxConfig,
    MaxExplorer,
    Minibatches,
    OracleExplorer,
    RandomExplorer,
)
from maxplore.solvers.mcts import Search
from maxplore.solvers.value_iteration import ValueIteration


def median_needed(shares: np.ndarray) -> float:
    return float(np.median(episodes_needed(shares)))


def at_most(line: str, limit: float, quantile: float = 0.5) -> Judge:
    """That so large a part of the seeds needed at most `limit` episodes."""

    def judge(shares: Shares) -> tuple[float, bool]:
        measured = float(np.quantile(episodes_needed(shares[line]), quantile, method="higher"))
        return measured, measured <= limit

    return Judge(judge, f"at most {limit:g}", (line,))


def about(line: str, share: float, tolerance: float, episodes: int) -> Judge:
    """That in the median about this share is explored after so many episodes, the last."""

    def judge(shares: Shares) -> tuple[float, bool]:
        measured = float(np.median(shares[line][:, -1]))
        return measured, abs(measured - share) <= tolerance

    return Judge(judge, f"within {tolerance:g} of {share:g}", (line,), episodes)


def within_of(line: str, other: str, episodes: float) -> Judge:
    """That one line needs at most so many episodes more than the other (medians)."""

    def judge(shares: Shares) -> tuple[float, bool]:
        extra = median_needed(shares[line]) - median_needed(shares[other])
        return extra, extra <= episodes

    return Judge(judge, f"at most {episodes:g}", (line, other))


def area(shares: np.ndarray) -> float:
    """The median over seeds of the area under the exploration curve, as a share."""
    return float(np.median(shares.mean(axis=1)))


def no_smaller(line: str, other: str, slack: float = 0.02) -> Judge:
    """That more of something does not explore less: the difference of the areas, up to the noise of few seeds."""

    def judge(shares: Shares) -> tuple[float, bool]:
        gain = area(shares[line]) - area(shares[other])
        return gain, gain >= -slack

    return Judge(judge, f"at least {-slack:g}", (line, other))


LENGTHS = tuple(range(20, 101, 5))
MEMBERS, TRAJECTORIES, ROUNDS = (2, 3, 5, 8), (1, 3, 5, 10), (5, 10, 25, 50)


def _chain() -> Exploration:
    return Exploration(
        "Chain of 50 states (fig. 2b)",
        {
            "MAX": Line(MaxExplorer()),
            "MAX, no warm-up": Line(MaxExplorer(FiniteMaxConfig(warm_up=0))),
            "MAX, one utility a plan": Line(MaxExplorer(FiniteMaxConfig(planner=ValueIteration(once=True)))),
            "EB-DQN": Line(EbDqnExplorer(), at_once=25),
            "Bootstrapped DQN": Line(BootstrappedDqnExplorer()),
            "random": Line(RandomExplorer(), at_once=50),
            "oracle": Line(OracleExplorer(), at_once=50),
        },
        seeds=100,
        episodes=60,
        smoke=("MAX", "oracle"),
        claims=(
            Claim("MAX explores everything: median of episodes", "about 15", at_most("MAX", 15.0)),
            Claim("our target for MAX: median of episodes at most 7.5", "-", at_most("MAX", 7.5)),
            Claim("our target for MAX: 75th percentile at most 8", "-", at_most("MAX", 8.0, 0.75)),
            Claim("no seed of MAX is stuck: most episodes of any seed", "-", at_most("MAX", 60.0, 1.0)),
            Claim("EB-DQN after 60 episodes: median share", "about 0.4", about("EB-DQN", 0.4, 0.05, 60)),
            Claim(
                "Bootstrapped DQN after 60 episodes: median share",
                "about 0.4",
                about("Bootstrapped DQN", 0.4, 0.05, 60),
            ),
        ),
    )


def _lengths() -> Exploration:
    return Exploration(
        "Chains of 20 to 100 states (fig. 2c)",
        {f"MAX, {length} states": Line(MaxExplorer(), length) for length in LENGTHS}
        | {f"oracle, {length} states": Line(OracleExplorer(), length, at_once=5) for length in LENGTHS},
        seeds=5,
        episodes=20,
        smoke=("MAX, 20 states", "oracle, 20 states"),
        claims=tuple(
            Claim(
                f"length {length}: episodes that MAX needs more than the oracle, at most 2",
                "explored",
                within_of(f"MAX, {length} states", f"oracle, {length} states", 2.0),
            )
            for length in LENGTHS
        ),
    )


def _trap() -> Exploration:
    return Exploration(
        "Chain with a stochastic trap (fig. 2d)",
        {
            "MAX": Line(MaxExplorer()),
            "MAX, trap": Line(MaxExplorer(), stochastic_trap=True),
            "oracle": Line(OracleExplorer(), at_once=20),
            "oracle, trap": Line(OracleExplorer(), stochastic_trap=True, at_once=20),
        },
        seeds=20,
        episodes=20,
        smoke=("MAX, trap", "oracle, trap"),
        claims=(
            Claim("MAX explores everything despite the trap: most episodes", "slowed", at_most("MAX, trap", 20.0, 1.0)),
            Claim("our target: at most 1 episode more with the trap (median)", "-", within_of("MAX, trap", "MAX", 1.0)),
        ),
    )


def _search() -> Exploration:
    """What the paper leaves open in its search and its training, one reading a line."""

    def reading(iterations: int = 64, search: Search = Search()) -> Line:
        return Line(MaxExplorer(replace(PAPER_MAX, training=Minibatches(per_episode=iterations), planner=search)))

    exact = replace(PAPER_MAX, planner=ValueIteration())
    lines = {
        "64 iterations an episode": reading(),
        "64, plans of 25 steps": reading(search=Search(depth=25)),
        "64, plans of 10 steps": reading(search=Search(depth=10)),
        "64, prior 0.1": reading(search=Search(prior=0.1)),
        "64, discount 0.95": reading(search=Search(discount=0.95)),
        "64, exact planning": Line(MaxExplorer(exact)),
        "8 iterations a step": reading(8 * 59),
        "32 iterations a step": reading(32 * 59),
        "64 iterations a step": reading(64 * 59),
        "8 a step, plans of 25 steps": reading(8 * 59, Search(depth=25)),
        "oracle": Line(OracleExplorer(), at_once=5),
    }
    return Exploration(
        "Readings of the paper's search and training (appendix C.2)",
        lines,
        seeds=5,
        episodes=25,
        smoke=("64, plans of 10 steps", "oracle"),
        claims=tuple(
            Claim(f"{label}: median of episodes at most 17", "about 15", at_most(label, 17.0))
            for label in lines
            if label != "oracle"
        ),
    )


def _robustness() -> Exploration:
    def search(**settings: int) -> Line:
        return Line(MaxExplorer(replace(PAPER_MAX, planner=replace(Search(), **settings))))

    ensembles = {
        f"{n} models": Line(MaxExplorer(replace(PAPER_MAX, model=replace(PAPER_MAX.model, members=n)))) for n in MEMBERS
    }
    trajectories = {f"{n} trajectories": search(trajectories=n) for n in TRAJECTORIES}
    rounds = {f"{n} rounds": search(rounds=n) for n in ROUNDS}
    oracle = {"oracle": Line(OracleExplorer(), at_once=5)}
    panels = {"ensemble size": ensembles, "trajectories": trajectories, "search rounds": rounds}
    return Exploration(
        "Robustness of MAX with the paper's search (appendix C.4)",
        ensembles | trajectories | rounds | oracle,
        seeds=5,
        episodes=25,
        smoke=("2 models", "oracle"),
        claims=tuple(
            Claim(f"{most} explore no less than {least}: area gained", "more is better", no_smaller(most, least))
            for least, *_, most in (list(lines) for lines in (ensembles, trajectories, rounds))
        ),
        panels={title: (*lines, "oracle") for title, lines in panels.items()},
    )


CHAIN: dict[str, Experiment] = {
    "chain": _chain(),
    "chain-lengths": _lengths(),
    "chain-trap": _trap(),
    "chain-behaviour": Behaviour(),
    "chain-search": _search(),
    "chain-robustness": _robustness(),
    "chain-grid": Grid(),
}
