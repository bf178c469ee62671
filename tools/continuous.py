"""Writes the tables of docs/continuous.md, and a short one of docs/choosing.md: `python -m tools.continuous`."""

import json
import statistics
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

from maxplore.envs.maze import CELLS

ROOT = Path(__file__).parent.parent
NAMES = {
    "one_core": "one core",
    "all_cores": "all cores",
    "mbrl_one_core": "one core",
}
"""Settings of the race."""


def loaded(name: str, root: Path = ROOT) -> dict[str, Any]:
    """One file of results."""
    return json.loads((root / "results" / "benchmarks" / f"{name}.json").read_text())


def by_method(result: dict[str, Any]) -> dict[str, list[dict[str, Any]]]:
    """The runs of each method, in the order in which methods first come."""
    found: dict[str, list[dict[str, Any]]] = {}
    for run in result["runs"]:
        found.setdefault(run["method"], []).append(run)
    return found


def mean_coverage(runs: list[dict[str, Any]]) -> float:
    """Over seeds."""
    return statistics.mean(run["coverage"] for run in runs)


def row(what: str, wanted: str, measured: str, holds: bool) -> str:
    """A line of the table of targets."""
    return f"| {what} | {wanted} | {measured} | {'yes' if holds else '**no**'} |"


def targets(root: Path = ROOT) -> str:
    """What was to be reached, and what was measured."""
    rows = ["| what | to reach | measured | holds |", "|---|---|---|---|"]
    for name, judged in JUDGED.items():
        if (root / "results" / "benchmarks" / f"{name}.json").exists():
            rows += judged(loaded(name, root))
        else:
            rows.append(f"| {name} | | not measured yet | **no** |")
    return "\n".join(rows)


def mountain_car(result: dict[str, Any]) -> list[str]:
    """The flag soon, and the state space covered."""
    runs = by_method(result)
    flags = [run["flag_at"] for run in runs["max"]]
    soon = sum(flag is not None and flag <= 220 for flag in flags)
    late = max((flag for flag in flags if flag is not None), default=None)
    ratio = mean_coverage(runs["max"]) / mean_coverage(runs["random"])
    return [
        row(
            f"Mountain Car, {len(flags)} seeds: the flag within 220 steps",
            "at least 9 of 10",
            f"{soon} of {len(flags)}; median step {statistics.median(f or 2000 for f in flags):g}, last {late}",
            soon >= 0.9 * len(flags),
        ),
        row("Mountain Car, 2,000 steps: cells, MAX over random", "4 times", f"{ratio:.1f} times", ratio >= 4),
    ]


def long_run(result: dict[str, Any]) -> list[str]:
    """What 20,000 steps cost."""
    return [
        row(
            f"Half Cheetah, 20,000 steps on one core, seed {run['seed']}",
            "25 minutes, 1.5 GB",
            f"{run['seconds'] / 60:.1f} minutes ({run['cpu_seconds'] / 60:.1f} of the processor), "
            f"{run['gigabytes']:.2f} GB, {run['coverage']} bins",
            run["seconds"] <= 1500 and run["gigabytes"] < 1.5,
        )
        for run in result["runs"]
    ]


def half_cheetah(result: dict[str, Any]) -> list[str]:
    """MAX beside all others."""
    runs = by_method(result)
    own, ratio = mean_coverage(runs["max"]), mean_coverage(runs["max"]) / mean_coverage(runs["random"])
    others = {name: mean_coverage(each) for name, each in runs.items() if name not in ("max", "random")}
    best = max(others, key=lambda name: others[name])
    what = f"Half Cheetah, 3,000 steps, {len(runs['max'])} seeds"
    return [
        row(f"{what}: bins, MAX over random", "4 times", f"{ratio:.1f} times", ratio >= 4),
        row(
            f"{what}: MAX ahead of {', '.join(others)} in the mean",
            "ahead",
            f"{own:.0f} against {others[best]:.0f} ({best})",
            own > others[best],
        ),
    ]


def ant_maze(result: dict[str, Any]) -> list[str]:
    """MAX sees it all, and those that do not plan less of it."""
    runs = by_method(result)
    own = [run["coverage"] for run in runs["max"]]
    rows = [
        row(
            f"Ant Maze, 12,000 steps, {len(own)} seeds: MAX visits all cells",
            "7 cells",
            f"{', '.join(map(str, own))} cells",
            min(own) == 7,
        )
    ]
    for method in ("jdrx", "perx"):
        cells = [run["coverage"] for run in runs[method]]
        fewer = all(theirs < mine for theirs, mine in zip(cells, own, strict=True))
        what = f"Ant Maze, 12,000 steps, {len(cells)} seeds: {method.upper()} visits fewer, seed by seed"
        rows.append(row(what, "fewer", f"{', '.join(map(str, cells))} cells", fewer))
    return rows


def race(result: dict[str, Any]) -> list[str]:
    """The same work beside Stable-Baselines3, PyTorch and mbrl-lib."""
    rows: list[str] = []
    said = {
        "sac_small": "SAC updates, batch 256, 2 x 256, over Stable-Baselines3's",
        "sac_small_twin_targets": "the same without a V network (twin-Q targets)",
        "sac_small_automatic": "the same with automatic temperature",
        "gradient": "`paper`: gradient step of the ensemble, over PyTorch's",
        "imagined": "`paper`: imagined step with its utility, over PyTorch's",
        "sac_paper": "`paper`: SAC update, batch 4096, over PyTorch's",
        "ensemble_5x2": "gradient step of 5 members of 2 x 200, batch 256, over mbrl-lib's",
        "ensemble_7x4": "the same of 7 members of 4 x 200",
        "cem": "a plan for a task by CEM, 350 plans of 30 steps, 5 rounds, 5 particles, over mbrl-lib's",
        "icem": "the same by iCEM",
    }
    for setting in NAMES:
        for group in ("sac_small", "paper_phase", "mbrl"):
            for name, item in result.get(setting, {}).get(group, {}).items():
                ratio, other = item["ratio"], item.get("ratio_by_processor_time")
                beside = f"by the processor's clock {other['median']:.2f}, " if other else ""
                rows.append(
                    row(
                        f"{said[name]}; {NAMES[setting]}",
                        f"{item['target']:g} times",
                        f"{ratio['median']:.2f} times (turns from {ratio['lowest']:.2f} to {ratio['highest']:.2f}), "
                        f"{beside}{item['maxplore']['share_of_machine']:.0%} of the machine's product rate",
                        item["reached"],
                    )
                )
    return rows


JUDGED: dict[str, Callable[[dict[str, Any]], list[str]]] = {
    "mountain-car": mountain_car,
    "half-cheetah-20000": long_run,
    "half-cheetah": half_cheetah,
    "ant-maze": ant_maze,
    "peers": race,
}
"""The files of results, and what makes rows of the table of targets out of each."""

STUDIES = {
    "mountain-car": "Mountain Car, 2,000 steps",
    "half-cheetah": "Half Cheetah, 3,000 steps",
    "ant-maze": "Ant Maze, 12,000 steps, of 7",
}


def measured(root: Path = ROOT) -> dict[str, dict[str, list[dict[str, Any]]]]:
    """The runs of every study that has results, by method."""
    there = (name for name in STUDIES if (root / "results" / "benchmarks" / f"{name}.json").exists())
    return {STUDIES[name]: by_method(loaded(name, root)) for name in there}


def coverage(root: Path = ROOT) -> str:
    """Coverage by method, every seed shown."""
    rows = [
        "| environment | method | coverage, mean | of each seed | model error | minutes of one core, mean |",
        "|---|---|---|---|---|---|",
    ]
    return "\n".join([*rows, *(line for said, runs in measured(root).items() for line in _coverage_rows(said, runs))])


def _coverage_rows(said: str, methods: dict[str, list[dict[str, Any]]]) -> list[str]:
    rows: list[str] = []
    for method, runs in methods.items():
        each = ", ".join(str(run["coverage"]) for run in runs)
        errors = [run["figures"]["error"][-1] for run in runs if "figures" in run]
        error = f"{statistics.mean(errors):.3f}" if errors else ""
        minutes = statistics.mean(run["cpu_seconds"] for run in runs) / 60
        rows.append(f"| {said} | {method} | {_short(mean_coverage(runs))} | {each} | {error} | {minutes:.1f} |")
    return rows


def tuning(root: Path = ROOT) -> str:
    """What was tried before `fast` was settled."""
    rows = ["| method | settings changed | bins, both seeds | saturation at the end | model error at the end |"]
    rows.append("|---|---|---|---|---|")
    for trial in loaded("tuning", root)["trials"]:
        runs = trial["runs"]
        bins = ", ".join(str(run["coverage"]) for run in runs)
        last = dict.fromkeys(("saturation", "error"), "")
        if "figures" in runs[0]:
            last = {name: f"{statistics.mean(run['figures'][name][-1] for run in runs):.2f}" for name in last}
        shown = f"`{' '.join(trial['settings'])}`" if trial["settings"] else ""
        rows.append(f"| {runs[0]['method']} | {shown} | {bins} | {last['saturation']} | {last['error']} |")
    return "\n".join(rows)


def between(page: str, mark: str, text: str) -> str:
    """The page with this text between `<!-- mark -->` and its end."""
    begin, end = f"<!-- {mark} -->", f"<!-- /{mark} -->"
    before, rest = page.split(begin)
    return f"{before}{begin}\n{text}\n{end}{rest.split(end)[1]}"


def written(page: str, root: Path = ROOT) -> str:
    """The page with its tables in their place."""
    page = between(page, "measured", f"{targets(root)}\n\n{coverage(root)}")
    return between(page, "tuning", tuning(root))


def in_short(root: Path = ROOT) -> str:
    """The table of docs/choosing.md: coverage by method; of the maze, what the trials of its figure saw."""
    found = {said: runs for said, runs in measured(root).items() if said != STUDIES["ant-maze"]}
    if not found:
        return "How much each method covers has not been measured with enough seeds yet."
    methods = list(dict.fromkeys(method for each in found.values() for method in each))
    rows = [f"| coverage, mean of seeds | {' | '.join(methods)} |", f"|---|{'---|' * len(methods)}"]
    for said, each in found.items():
        cells = [
            f"{_short(mean_coverage(each[method]))} ({len(each[method])})" if method in each else ""
            for method in methods
        ]
        rows.append(f"| {said} | {' | '.join(cells)} |")
    if (maze := root / "results" / "ant-maze" / "summary.json").exists():
        summary = json.loads(maze.read_text())
        shares = summary["final_fraction"]
        cells = [
            f"{_short(len(CELLS) * statistics.mean(shares[name]))} ({len(shares[name])})" if name in shares else ""
            for name in methods
        ]
        said = f"Ant Maze, {summary['steps']:,} steps, of {len(CELLS)}: the trials of its figure"
        rows.append(f"| {said} | {' | '.join(cells)} |")
    return "\n".join([*rows, "", "In brackets: seeds. Each run had one core."])


def _short(number: float) -> str:
    """Cells of a maze need a decimal, thousands of bins none."""
    return f"{number:.0f}" if number >= 100 else f"{number:.3g}"


def main() -> int:
    for name, made in (
        ("docs/continuous.md", written),
        ("docs/choosing.md", lambda page: between(page, "continuous", in_short())),
    ):
        page = ROOT / name
        page.write_text(made(page.read_text()))
    return 0


if __name__ == "__main__":
    sys.exit(main())
