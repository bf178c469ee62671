"""Writes the tables of docs/scaling.md from results/benchmarks: `python -m tools.scaling`."""

import statistics
import sys
from pathlib import Path
from typing import Any

from maxplore.entry import Entry
from maxplore.methods import METHODS, model_based
from maxplore.solvers import Sac
from tools.continuous import ROOT, between, by_method, loaded
from tools.costs import EXPLORED

PAGE = ROOT / "docs" / "scaling.md"

ENVIRONMENTS, SEEDS = 10, 100
"""Of the study that is planned."""
NODES, CORES, NIGHT = (1, 10, 100), 16, 12.0
"""Numbers of nodes, cores of one, and the hours of a night."""
KB, MB, GB, TB = 1e3, 1e6, 1e9, 1e12


def fast_hours(root: Path = ROOT) -> dict[str, dict[str, float]]:
    """Core hours of one trial with `fast`, by environment and method."""
    hours: dict[str, dict[str, float]] = {}
    for name, (env, _, _) in EXPLORED.items():
        if name != "half-cheetah-20000":
            runs = by_method(loaded(name, root))
            means = {method: statistics.mean(run["cpu_seconds"] for run in own) / 3600 for method, own in runs.items()}
            stand_in = {method: 0.0 if method == "random" else means["max"] for method in METHODS}
            hours[env] = {method: means.get(method, stand_in[method]) for method in METHODS}
    # Random exploration of the Ant Maze was not measured: a step without a model costs what it costs elsewhere.
    for env in hours:
        if hours[env]["random"] == 0.0:
            steps = {"Half Cheetah": 3000, "Ant Maze": 12_000}
            hours[env]["random"] = hours["Half Cheetah"]["random"] * steps[env] / steps["Half Cheetah"]
    return hours


def paper_hours(root: Path = ROOT, *, steps: int = 20_000, episode: int = 100) -> dict[str, float]:
    """Core hours of one trial of Half Cheetah with `paper`, by method: its work, counted, times what it is measured to
    take."""
    cores = loaded("peers", root)["all_cores"]["cores"]
    measured = loaded("peers", root)["all_cores"]["paper_phase"]
    hours: dict[str, float] = {}
    for method in METHODS:
        config = model_based(method, "paper", {}, Entry((19,)), Entry((6,)))
        assert isinstance(config.solver, Sac)
        if config.utility is None:
            hours[method] = 0.0  # a step costs what it does with `fast`
            continue
        sac, rounds = config.solver.config, range(config.warm_up, steps, config.plan_every)
        solves = len({*rounds, *(step for step in range(0, steps, episode) if step >= config.warm_up)})
        ahead = sac.episodes if sac.active else 0
        work = {
            "gradient": sum(config.fit.epochs * max(rows // config.fit.batch_size, 1) for rows in rounds),
            "imagined": solves * ahead * sac.steps,
            "sac_paper": solves * (sac.history_updates + max(ahead - sac.random_episodes, 0) * sac.updates),
        }
        seconds = sum(count * measured[name]["maxplore"]["ms"] / 1000 for name, count in work.items())
        hours[method] = seconds * cores / 3600
    return hours


def study(root: Path = ROOT) -> str:
    """Core hours of the whole study, and how long it takes on how many nodes."""
    fast, paper = fast_hours(root), paper_hours(root)
    each = {env: sum(own.values()) for env, own in fast.items()}
    rows = {f"`fast`, all like {env}": ENVIRONMENTS * SEEDS * hours for env, hours in each.items()}
    rows["`fast`, the mean of the three"] = ENVIRONMENTS * SEEDS * statistics.mean(each.values())
    rows["`paper`, all like Half Cheetah"] = ENVIRONMENTS * SEEDS * sum(paper.values())
    trials = ENVIRONMENTS * len(METHODS) * SEEDS
    head = " | ".join(f"{nodes} node{'s' * (nodes > 1)}" for nodes in NODES)
    lines = [
        f"| {trials:,} trials | core hours | {head} | nodes for a night |",
        "|---|---|" + "---|" * (len(NODES) + 1),
    ]
    for said, hours in rows.items():
        times = " | ".join(duration(hours / (nodes * CORES)) for nodes in NODES)
        lines.append(f"| {said} | {hours:,.0f} | {times} | {max(1, -(-hours // (CORES * NIGHT))):,.0f} |")
    return "\n".join([*lines, "", f"A node has {CORES} cores, all busy all the time; a night has {NIGHT:g} hours."])


def duration(hours: float) -> str:
    """In words."""
    if hours < 48:
        return f"{hours:.1f} hours"
    return f"{hours / 24:,.0f} days" if hours < 24 * 700 else f"{hours / 24 / 365:.1f} years"


def trial(root: Path = ROOT) -> str:
    """Core hours of one trial."""
    fast, paper = fast_hours(root), paper_hours(root)
    lines = [f"| core hours of a trial | {' | '.join(METHODS)} |", f"|---|{'---|' * len(METHODS)}"]
    for env, own in fast.items():
        seen = {
            method for name, (said, _, _) in EXPLORED.items() if said == env for method in by_method(loaded(name, root))
        }
        cells = [f"{hours:.3f}" if method in seen else f"({hours:.3f})" for method, hours in own.items()]
        lines.append(f"| {env}, `fast` | {' | '.join(cells)} |")
    cells = [f"({hours:,.0f})" for hours in paper.values()]
    lines.append(f"| Half Cheetah, 20,000 steps, `paper` | {' | '.join(cells)} |")
    return "\n".join(lines)


def storage(root: Path = ROOT) -> str:
    """What a trial leaves on the disk, and what the study does."""
    own, trials = loaded("startup", root)["bytes"], ENVIRONMENTS * len(METHODS) * SEEDS
    steps, kept = 20_000, 3
    run = own["record_per_step"] * steps + kept * own["checkpoint"]
    points = loaded("scaling", root)["curves"]["history"]
    before, now = (points[name]["points"] for name in ("save", "checkpoint"))
    at = {point["at"]: point["megabytes_on_disk"] for point in before}
    now_at = {point["at"]: point["megabytes_on_disk"] for point in now}
    last = max(at)
    return "\n".join(
        [
            "| on the disk | |",
            "|---|---|",
            f"| the record, for each step of Half Cheetah, all told | {own['record_per_step']:,.0f} bytes |",
            f"| a checkpoint | {own['checkpoint'] / MB:.1f} MB |",
            f"| a run of {steps:,} steps, with its {kept} checkpoints | {run / MB:.0f} MB |",
            f"| the study of {trials:,} such runs | {trials * run / TB:.2f} TB, {trials * (kept + 5):,} files |",
            f"| compiled code of one kind of trial | {own['cache'] / MB:.0f} MB, {own['cache_files']} files |",
            f"| a checkpoint at {last:,} transitions | {now_at[last]:.1f} MB; with D in it {at[last]:.0f} MB |",
        ]
    )


def starts(root: Path = ROOT) -> str:
    """What a start costs, and what it comes to."""
    own, trials = loaded("startup", root), ENVIRONMENTS * len(METHODS) * SEEDS
    rows = [
        "| start of a `fast` Half Cheetah trial | seconds of the processor | of the study's core hours |",
        "|---|---|---|",
    ]
    total = ENVIRONMENTS * SEEDS * statistics.mean(sum(each.values()) for each in fast_hours(root).values())
    for kind, said in (("cold", "nothing compiled yet"), ("warm", "compiled code from the cache")):
        found = own[kind]["cpu_seconds"]
        share = trials * found["median"] / 3600 / total
        seconds = f"{found['median']:.1f} ({found['lowest']:.1f} to {found['highest']:.1f})"
        rows.append(f"| {said} | {seconds} | {share:.1%} |")
    return "\n".join([*rows, "", f"Medians and extremes of {own['turns']} turns, {own['what'].split(':')[0]}."])


def scheduler(root: Path = ROOT) -> str:
    """What the simulation says."""
    result = loaded("scheduler", root)
    head = "| case | workers | hours | over the least | starts | done again | idle | losses | given up |"
    rows = [head, "|" + "---|" * 9]
    for row in result["rows"]:
        over, losses = row["over_least"], row["losses"]
        cells = [f"{row[part]['median']:.2%}" for part in ("starting", "again", "idle")]
        rows.append(
            f"| {row['case']} | {row['workers']:,} | {row['hours']['median']:,.1f} | {over['median']:.3f} "
            f"({over['lowest']:.3f} to {over['highest']:.3f}) | {' | '.join(cells)} | {losses['median']:.0f} | "
            f"{row['given_up']['median']:.0f} |"
        )
    most = max(row["loop_ms"]["median"] for row in result["rows"])
    return "\n".join(
        [
            *rows,
            "",
            f"{result['trials']:,} trials, medians of {result['seeds']} seeds, extremes in brackets. Starts, and work "
            "done again, are shares of the time that workers were busy, idle is one of all their time. Given up are "
            f"trials that lost their worker once too often. A look of the loop: up to {most:.2g} ms.",
        ]
    )


def growth(root: Path = ROOT) -> str:
    """Fitted exponents."""
    from benchmarks.scaling import AXES, OPERATIONS

    rows = ["| with | of | from | to | exponent | at the end | by counting | memory |", "|" + "---|" * 8]
    for axis, operations in loaded("scaling", root)["curves"].items():
        for name, own in operations.items():
            first, last = own["points"][0], own["points"][-1]
            mark = " **bends**" if own["bends"] else ""
            rows.append(
                f"| {AXES[axis].said}, {first['at']:,} to {last['at']:,} | {OPERATIONS[name].said} | {short(first)} | "
                f"{short(last)} | {own['exponent']:.2f} | {own['last']:.2f}{mark} | {own['theory']:g} | "
                f"{own['memory_grown']:+,.0f} MB |"
            )
    return "\n".join(rows)


def short(point: dict[str, Any]) -> str:
    """How long, in milliseconds."""
    return f"{1e3 * point['seconds']:.3g} ms"


def mended(root: Path = ROOT) -> str:
    """What the two mended faults cost, from the same run: D copied at every step, D in every checkpoint."""
    curves = loaded("scaling", root)["curves"]["history"]
    rows = [
        "| transitions in D | tell, D's arrays made anew, over now | checkpoint with D, over now |",
        "|---|---|---|",
    ]
    pairs = [[curves[name]["points"] for name in both] for both in (("tell_looking", "tell"), ("save", "checkpoint"))]
    for k, point in enumerate(pairs[0][0]):
        ratios = [before[k]["seconds"] / now[k]["seconds"] for before, now in pairs]
        rows.append(f"| {point['at']:,} | {ratios[0]:.1f} times | {ratios[1]:.1f} times |")
    return "\n".join(rows)


TABLES = {
    "trial": trial,
    "study": study,
    "storage": storage,
    "starts": starts,
    "scheduler": scheduler,
    "growth": growth,
    "mended": mended,
}


def written(page: str, root: Path = ROOT) -> str:
    """The page with its tables in place."""
    for mark, made in TABLES.items():
        try:
            table = made(root)
        except FileNotFoundError:
            table = "Not measured yet."
        page = between(page, mark, table)
    return page


def main() -> int:
    PAGE.write_text(written(PAGE.read_text()))
    return 0


if __name__ == "__main__":
    sys.exit(main())
