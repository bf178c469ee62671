"""Writes what things cost into docs/choosing.md, from results/benchmarks: `python -m tools.costs`."""

import statistics
import sys
from pathlib import Path
from typing import Any

from maxplore.entry import Entry
from maxplore.methods import model_based
from maxplore.solvers import Sac
from tools.continuous import ROOT, between, by_method, loaded

PAGE = ROOT / "docs" / "choosing.md"

EXPLORED = {
    "mountain-car": ("Mountain Car", 2, 1),
    "half-cheetah": ("Half Cheetah", 19, 6),
    "half-cheetah-20000": ("Half Cheetah", 19, 6),
    "ant-maze": ("Ant Maze", 31, 8),
}
"""Files of results, the environment, and how many numbers its states and actions have."""

SOLVED = {
    "exploitation-chain": ("Chain", "exact"),
    "exploitation-frozen-lake": ("FrozenLake", "exact"),
    "exploitation-mountain-car": ("Mountain Car", "icem"),
    "exploitation-half-cheetah-ahead=0": ("Half Cheetah, 20,000 steps, `ahead=0`", "sac"),
    "exploitation-half-cheetah-explored-fresh_every=20-epochs=5-cooling=1.0-dither=0.1-rest=0.3": (
        "Half Cheetah, 20,000 steps",
        "sac, looking ahead",
    ),
}
"""Files of results, the environment, and how its task is solved."""

EPISODE, STEPS = 100, 20_000
"""Of Half Cheetah, as the paper has it."""


def table(root: Path = ROOT) -> str:
    """Processor time and memory of everything that was measured."""
    rows = ["| preset `fast` | method | solver | steps | minutes of one core | for 1,000 steps | GB |"]
    rows.append("|---|---|---|---|---|---|---|")
    for name, (env, states, actions) in EXPLORED.items():
        for method, runs in by_method(loaded(name, root)).items():
            config = model_based(method, "fast", {}, Entry((states,)), Entry((actions,)))
            solver = "" if config.utility is None else type(config.solver).__name__.lower()
            minutes, steps = statistics.mean(run["cpu_seconds"] for run in runs) / 60, runs[0]["steps"]
            most = max(run["gigabytes"] for run in runs)
            cost = f"{minutes:.1f} | {1000 * minutes / steps:.2f} | {most:.1f}"
            rows.append(f"| {env} | {method} | {solver} | {steps:,} | {cost} |")
    rows += ["", "| a task from D alone | solver | minutes of one core, each run |", "|---|---|---|"]
    for name, (env, solver) in SOLVED.items():
        for task, runs in _by_task(loaded(name, root)["runs"]).items():
            each = ", ".join(f"{run['cpu_seconds'] / 60:.2g}" for run in runs)
            rows.append(f"| {env}: {task} | {solver} | {each} |")
    days, cores = paper_days(root), loaded("peers", root)["all_cores"]["cores"]
    return "\n".join(
        [
            *rows,
            "",
            "Of two tasks from one D, the first pays for the model that both are learned in.",
            "",
            f"The preset `paper` would need {days:.0f} days for {STEPS:,} steps of Half Cheetah on {cores} cores.",
        ]
    )


def _by_task(runs: list[dict[str, Any]]) -> dict[str, list[dict[str, Any]]]:
    return {task: [run for run in runs if run["task"] == task] for task in dict.fromkeys(run["task"] for run in runs)}


def paper_days(root: Path = ROOT) -> float:
    """What the preset `paper` takes: the parts of its work, counted, each times what one of it was measured to take."""
    config = model_based("max", "paper", {}, Entry((19,)), Entry((6,)))
    assert isinstance(config.solver, Sac)
    sac, rounds = config.solver.config, range(config.warm_up, STEPS, config.plan_every)
    resets = (step for step in range(0, STEPS, EPISODE) if step >= config.warm_up)
    solves = len({*rounds, *resets})
    work = {
        "gradient": sum(config.fit.epochs * max(rows // config.fit.batch_size, 1) for rows in rounds),
        "imagined": solves * sac.episodes * sac.steps,
        "sac_paper": solves * (sac.history_updates + (sac.episodes - sac.random_episodes) * sac.updates),
    }
    measured = loaded("peers", root)["all_cores"]["paper_phase"]
    return sum(count * measured[name]["maxplore"]["ms"] for name, count in work.items()) / 1000 / 86400


def profile(root: Path = ROOT) -> str:
    """Where the time of a run goes, and what it takes beside an earlier commit."""
    told = loaded("profile", root)
    rows = [
        "| method | compiled | simulator | neither | of it: the record | checkpoints |",
        "|---|---|---|---|---|---|",
    ]
    for run in told["runs"]:
        names = ("compiled", "simulator", "outside", "record", "checkpoint")
        rows.append(f"| {run['method']} | " + " | ".join(f"{run['shares'][name]:.1%}" for name in names) + " |")
    for own in told["compared"]:
        low, high = own["ratio_quartiles"]
        rows += ["", f"{own['method']}: at commit {own['before']} the same steps took {own['ratio']:.2f} times as long"]
        rows[-1] += f" (quartiles of {own['turns']} turns: {low:.2f} to {high:.2f})."
    return "\n".join(rows)


def written(page: str, root: Path = ROOT) -> str:
    """The page with its tables in place."""
    return between(between(page, "costs", table(root)), "profile", profile(root))


def main() -> int:
    PAGE.write_text(written(PAGE.read_text()))
    return 0


if __name__ == "__main__":
    sys.exit(main())
