"""Writes the tables of docs/continuous.md from results/benchmarks: `python tools/continuous.py`."""

import json
import statistics
import sys
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parent.parent
NAMES = {"one_core": "one core", "all_cores": "all cores"}


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
    car, cheetah, ant = (by_method(loaded(name, root)) for name in ("mountain-car", "half-cheetah", "ant-maze"))
    (long,) = loaded("half-cheetah-20000", root)["runs"]
    flags = [run["flag_at"] for run in car["max"]]
    soon = sum(flag is not None and flag <= 220 for flag in flags)
    wide = mean_coverage(car["max"]) / mean_coverage(car["random"])
    wider = mean_coverage(cheetah["max"]) / mean_coverage(cheetah["random"])
    others = {name: mean_coverage(runs) for name, runs in cheetah.items() if name not in ("max", "random")}
    best = max(others, key=lambda name: others[name])
    all_cells = sum(run["coverage"] == 7 for run in ant["max"])
    fewer = max(run["coverage"] for name in ("jdrx", "perx") for run in ant[name])
    late = max((flag for flag in flags if flag is not None), default=None)
    rows = [
        "| what | to reach | measured | holds |",
        "|---|---|---|---|",
        row(
            f"Mountain Car, {len(flags)} seeds: the flag within 220 steps",
            "at least 9 of 10",
            f"{soon} of {len(flags)}; median step {statistics.median(f or 2000 for f in flags):g}, last {late}",
            soon >= 0.9 * len(flags),
        ),
        row("Mountain Car, 2,000 steps: cells, MAX over random", "4 times", f"{wide:.1f} times", wide >= 4),
        row(
            "Half Cheetah, 20,000 steps on one core",
            "25 minutes, 1.5 GB",
            f"{long['seconds'] / 60:.1f} minutes ({long['cpu_seconds'] / 60:.1f} of the processor), "
            f"{long['gigabytes']:.2f} GB",
            long["seconds"] <= 1500 and long["gigabytes"] < 1.5,
        ),
        row(
            f"Half Cheetah, 3,000 steps, {len(cheetah['max'])} seeds: bins, MAX over random",
            "4 times",
            f"{wider:.1f} times",
            wider >= 4,
        ),
        row(
            "Half Cheetah, 3,000 steps: MAX ahead of JDRX, PERX and TVAX in the mean",
            "ahead",
            f"{mean_coverage(cheetah['max']):.0f} against {others[best]:.0f} ({best})",
            mean_coverage(cheetah["max"]) > others[best],
        ),
        row(
            "Ant Maze, 12,000 steps: MAX visits all cells",
            "7 cells",
            f"{all_cells} of {len(ant['max'])} seeds; {', '.join(str(run['coverage']) for run in ant['max'])} cells",
            all_cells == len(ant["max"]),
        ),
        row("Ant Maze, 12,000 steps: most cells of a reactive method", "fewer", f"{fewer} cells", fewer < 7),
    ]
    return "\n".join([*rows, *race(root)])


def race(root: Path = ROOT) -> list[str]:
    """The rows of the race against Stable-Baselines3 and PyTorch."""
    result, rows = loaded("peers", root), list[str]()
    said = {
        "sac_small": "SAC updates, batch 256, 2 x 256, over Stable-Baselines3's",
        "sac_small_twin_targets": "the same without a V network (twin-Q targets)",
        "sac_small_automatic": "the same with automatic temperature",
        "gradient": "`paper`: gradient step of the ensemble, over PyTorch's",
        "imagined": "`paper`: imagined step with its utility, over PyTorch's",
        "sac_paper": "`paper`: SAC update, batch 4096, over PyTorch's",
    }
    for setting in NAMES:
        for group in ("sac_small", "paper_phase"):
            for name, item in result[setting].get(group, {}).items():
                ratio = item["ratio"]
                rows.append(
                    row(
                        f"{said[name]}; {NAMES[setting]}",
                        f"{item['target']:g} times",
                        f"{ratio['median']:.2f} times (turns from {ratio['lowest']:.2f} to {ratio['highest']:.2f}), "
                        f"{item['maxplore']['share_of_machine']:.0%} of the machine's product rate",
                        item["reached"],
                    )
                )
    return rows


def coverage(root: Path = ROOT) -> str:
    """Coverage by method, every seed shown."""
    rows = [
        "| environment | method | coverage, mean | of each seed | model error | minutes, mean |",
        "|---|---|---|---|---|---|",
    ]
    for name, said in (("mountain-car", "Mountain Car, 2,000 steps"), ("half-cheetah", "Half Cheetah, 3,000 steps")):
        rows += _coverage_rows(said, by_method(loaded(name, root)))
    rows += _coverage_rows("Ant Maze, 12,000 steps", by_method(loaded("ant-maze", root)))
    return "\n".join(rows)


def _coverage_rows(said: str, methods: dict[str, list[dict[str, Any]]]) -> list[str]:
    rows: list[str] = []
    for method, runs in methods.items():
        each = ", ".join(str(run["coverage"]) for run in runs)
        errors = [run["figures"]["error"][-1] for run in runs if "figures" in run]
        error = f"{statistics.mean(errors):.3f}" if errors else ""
        minutes = statistics.mean(run["seconds"] for run in runs) / 60
        rows.append(f"| {said} | {method} | {mean_coverage(runs):.0f} | {each} | {error} | {minutes:.1f} |")
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
    """The table of the README: coverage by method."""
    studies = (("mountain-car", "Mountain Car, 2,000 steps"), ("half-cheetah", "Half Cheetah, 3,000 steps"))
    studies = (*studies, ("ant-maze", "Ant Maze, 12,000 steps, of 7"))
    found = {said: by_method(loaded(name, root)) for name, said in studies}
    methods = list(dict.fromkeys(method for each in found.values() for method in each))
    rows = [f"| coverage, mean of seeds | {' | '.join(methods)} |", f"|---|{'---|' * len(methods)}"]
    for said, each in found.items():
        cells = [
            f"{mean_coverage(each[method]):.3g} ({len(each[method])})" if method in each else "" for method in methods
        ]
        rows.append(f"| {said} | {' | '.join(cells)} |")
    return "\n".join([*rows, "", "In brackets: seeds. Each run had one core."])


def main() -> int:
    for name, made in (
        ("docs/continuous.md", written),
        ("README.md", lambda page: between(page, "continuous", in_short())),
    ):
        page = ROOT / name
        page.write_text(made(page.read_text()))
    return 0


if __name__ == "__main__":
    sys.exit(main())
