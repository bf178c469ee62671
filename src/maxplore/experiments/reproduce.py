"""Runs an experiment: the numbers, the claims judged on them, the figure. The plot only reads recorded numbers."""

import json
from pathlib import Path
from typing import Any

import matplotlib as mpl

from maxplore.errors import InputError
from maxplore.experiments import EXPERIMENTS
from maxplore.experiments.spec import Asked, Experiment, Say
from maxplore.experiments.swept import OfRuns
from maxplore.runs.directory import make_directory
from maxplore.runs.files import placed
from maxplore.sweep import Engine


def figure_named(name: str, asked: Asked) -> Experiment:
    """The figure of this name in the size that is asked for, or an `InputError`."""
    if name not in EXPERIMENTS:
        raise InputError(f"figure is {name!r}, expected one of {', '.join(EXPERIMENTS)}, or all")
    try:
        return EXPERIMENTS[name].at(asked)
    except InputError as error:
        raise InputError(f"{name}: {error}") from None


def made_of_runs(name: str, asked: Asked) -> OfRuns:
    """The figure of this name, or an `InputError` if it is not made of runs."""
    figure = figure_named(name, asked)
    if not isinstance(figure, OfRuns):
        known = ", ".join(own for own, each in EXPERIMENTS.items() if isinstance(each, OfRuns))
        raise InputError(
            f"{name} is not made of runs, expected one of {known}: maxplore reproduce {name} makes it here"
        )
    return figure


def reproduce(name: str, out: Path, asked: Asked, *, say: Say, engine: Engine | None = None) -> dict[str, Any]:
    """Run a figure, write `summary.json`, PNG and SVG into `out`, and return the summary. The `engine` is for the runs
    that it may be made of."""
    from maxplore import __version__

    experiment = figure_named(name, asked)
    make_directory(out)  # before the work: a folder that cannot be made should not cost it
    measured = experiment.run(out, say, engine) if isinstance(experiment, OfRuns) else experiment.run(out, say)
    summary = {
        "figure": name,
        "command": _command(name, asked, experiment.seeds),
        "version": __version__,
        "config": measured.config,
        "seeds": experiment.seeds,
        "claims": [claim for claim in measured.claims if claim["holds"] is not None],
        "not_judged": [claim for claim in measured.claims if claim["holds"] is None],
        "curves": measured.curves,
        **measured.extra,
    }
    mpl.use("Agg")
    figure = experiment.draw(summary)
    # All is written before anything is put in its place: pictures never stand beside the numbers of another run.
    # The same numbers make the same files, byte by byte: no date, and names of SVG's parts that are not drawn.
    with (
        mpl.rc_context({"svg.hashsalt": name}),
        placed(out / "summary.json") as text,
        placed(out / f"{name}.svg") as svg,
        placed(out / f"{name}.png") as png,
    ):
        figure.savefig(png, dpi=150, format="png")
        figure.savefig(svg, dpi=150, format="svg", metadata={"Date": None})
        text.write(f"{json.dumps(summary, indent=1)}\n".encode())
    return summary


def _command(name: str, asked: Asked, seeds: int) -> str:
    """What to type for the same."""
    given = {"seeds": seeds, **asked.given}
    words = [f"--{key} {' '.join(value) if isinstance(value, tuple) else value}" for key, value in given.items()]
    preset = [] if asked.preset == "fast" else [f"--preset {asked.preset}"]
    return " ".join(["maxplore reproduce", name, *preset, *words])
