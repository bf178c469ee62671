"""`maxplore reproduce`, `report` and `export`."""

import contextlib
import os
import re

import jax

import maxplore_cli as cli
from maxplore.commands.say import say, status_of, warn
from maxplore.commands.sweeping import SOME_FAILED, engine_named, usual_out
from maxplore.errors import InputError
from maxplore.runs import export as exporting
from maxplore.runs.directory import Folder, make_directory
from maxplore.runs.files import DIRECTORY, check_kind
from maxplore.runs.record import Record


def reproduce(asked: cli.Reproduce) -> int:
    """Run figures, and say which claims hold."""
    from maxplore.experiments import EXPERIMENTS, Asked
    from maxplore.experiments.reproduce import figure_named, made_of_runs
    from maxplore.experiments.reproduce import reproduce as run

    with contextlib.suppress(RuntimeError):  # JAX has started already: then it is its owner's choice
        jax.config.update("jax_num_cpu_devices", os.cpu_count() or 1)  # seeds are dealt out to devices
    names = ("seeds", "episodes", "steps", "methods", "configs")
    size = Asked(asked.preset, **{name: getattr(asked, name) for name in names})
    every = asked.figure == "all"
    figures = list(EXPERIMENTS) if every else [asked.figure]
    for name in figures:
        figure_named(name, size)  # before the first takes its hours
    if not every and asked.engine != "local":
        made_of_runs(asked.figure, size)
    status = 0
    with engine_named(asked.engine, asked.address) as engine:
        for name in figures:
            out = usual_out(name, asked.preset) if asked.out is None else asked.out / name if every else asked.out
            if every:
                say(f"{name}: {EXPERIMENTS[name].title}")
            try:
                summary = run(name, out, size, say=say, engine=engine)
            except KeyboardInterrupt as ended:
                warn(
                    f"interrupted; what runs and settings of grids have done is kept in {out}: the same command goes on"
                )
                return status_of(ended)
            for claim in summary["claims"]:
                verdict = "holds" if claim["holds"] else "DOES NOT HOLD"
                between = f" [{', '.join(map(str, claim['interval']))}]" if "interval" in claim else ""
                say(
                    f"{verdict:14s} {claim['claim']}: {claim['measured']}{between} (paper: {claim['paper']}; holds if: "
                    f"{claim['holds_if']})"
                )
            if left := summary["not_judged"]:
                more = f", and {len(left) - 1} more" if len(left) > 1 else ""
                say(f"{'not judged':14s} {left[0]['claim']}: {left[0]['why']}{more}")
            for run_name, reason in summary.get("failed", {}).items():
                warn(f"{run_name} failed and is left out: {reason}")
                status = SOME_FAILED
            say(f"written to {out}")
    return status


def report(asked: cli.Report) -> int:
    """Write a page, or serve it."""
    from maxplore.report import write_page

    if not asked.directories:
        raise InputError("no directory is given, expected at least one of a run")
    folders = [Folder(path) for path in asked.directories]
    if asked.watch:
        from maxplore.report.watch import watch

        if asked.out is not None:
            raise InputError(f"out is {asked.out} with --watch, expected none: a page that is watched is not written")
        watch(folders, asked.port, say)
        return 0
    out = asked.out or asked.directories[0] / "report.html"
    if asked.out is not None:
        make_directory(out.parent)
    write_page(folders, out)
    say(f"written to {out}")
    return 0


def export(asked: cli.Export) -> int:
    """Hand D to other tools."""
    folder = Folder(asked.directory)
    config = folder.read_config()
    spaces = folder.spaces(config)
    with Record.peek(folder.record) as record:
        damage = record.damage()
        if not record.steps:
            raise damage or InputError(f"{folder.path} has no transition yet, expected at least one to export")
        if asked.to == "npz":
            out = asked.out or folder.path / "data.npz"
            exporting.to_npz(record, *spaces, out)
            done = f"written to {out}"
        else:
            out = asked.out or folder.path / "minari"
            if asked.out is None:
                check_kind(out, DIRECTORY)
            usual = re.sub(r"[^\w-]+", "-", folder.path.resolve().name).strip("-") or "run"
            name = asked.name or f"maxplore/{usual}-v0"
            exporting.to_minari(record, *spaces, out, name, env_id=config.env, env_kwargs=config.env_kwargs)
            done = f"{name} is written to {out}: MINARI_DATASETS_PATH={out} lets Minari find it"
    if damage is not None:
        raise InputError(f"{damage.found}, and only these exported: {done}")
    say(done)
    return 0
