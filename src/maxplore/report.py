"""One HTML page about runs: what was asked, how it went, what came of it. It needs nothing but itself to be read."""

import io
from collections import defaultdict
from collections.abc import Iterable, Sequence
from html import escape
from pathlib import Path
from typing import Any

import matplotlib as mpl
from matplotlib.figure import Figure

from maxplore.errors import InputError
from maxplore.runs.directory import Folder, RunConfig, write_text
from maxplore.runs.figures import CURVES, Curve, curves
from maxplore.runs.record import Record

STYLE = """
:root { color-scheme: light dark; }
body { font: 16px/1.5 system-ui, sans-serif; max-width: 60rem; margin: 2rem auto; padding: 0 1rem; }
table { border-collapse: collapse; margin: 1rem 0; display: block; overflow-x: auto; }
th, td { text-align: left; padding: .2rem .8rem .2rem 0; border-bottom: 1px solid #8884; vertical-align: top; }
figure { margin: 1rem 0; background: #fff; border-radius: .4rem; padding: .5rem; }
figure svg { width: 100%; height: auto; }
"""


def write_page(folders: Sequence[Folder], out: Path) -> None:
    """Write the page about these runs."""
    sections, found = [], defaultdict[str, dict[str, Curve]](dict)
    names = _names(folders)
    for folder, name in zip(folders, names, strict=True):
        config = folder.read_config()
        with Record.read(folder.record) as record:
            sections.append(_section(name, config, record))
            for metric, curve in curves(record).items():
                found[metric][name] = curve
    drawn = "".join(_figure(CURVES[metric], found[metric]) for metric in CURVES if found[metric])
    title = " and ".join(map(escape, names))
    page = (
        '<!doctype html>\n<html lang="en"><head><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        f"<title>maxplore: {title}</title><style>{STYLE}</style></head><body><h1>{title}</h1>"
        f"{drawn or '<p>Nothing was measured yet.</p>'}{''.join(sections)}</body></html>\n"
    )
    if out.is_dir():
        raise InputError(f"{out} is a directory, expected a file for the page: give one with --out")
    write_text(out, page)


def _names(folders: Sequence[Folder]) -> list[str]:
    """What to call runs: their folders' names, or whole paths if two would be called the same."""
    short = [folder.path.resolve().name for folder in folders]
    return short if len(set(short)) == len(short) else [str(folder.path) for folder in folders]


def _section(name: str, config: RunConfig, record: Record) -> str:
    """A run in tables."""
    last = record.last_episode()
    asked = {
        "environment": config.env,
        "method": f"{config.method}, preset {config.preset}, seed {config.seed}",
        "settings": ", ".join(f"{key} = {value}" for key, value in config.settings.items()) or "the usual ones",
        "steps": f"{record.steps} of {record.aimed}, in {0 if last is None else last.episode + 1} episodes",
        "versions": ", ".join(f"{key} {value}" for key, value in config.versions.items()),
    }
    tasks = [
        (row["task"], row["step"], _forecast(row["report"]), ", ".join(map(_short, row["returns"])))
        for row in record.tasks()
    ]
    events = [(event.time, event.step, event.kind, event.text) for event in record.events()]
    return (
        f"<h2>{escape(name)}</h2>{_table((), asked.items())}"
        + (f"<h3>Tasks</h3>{_table(('task', 'after step', 'forecast', 'real returns'), tasks)}" if tasks else "")
        + (f"<h3>Events</h3>{_table(('when', 'step', 'what', ''), events)}" if events else "")
    )


def _forecast(report: Any) -> str:
    try:
        own = report["forecast"]
        return f"{_short(own['mean'])} ({_short(own['low'])} to {_short(own['high'])})"
    except (KeyError, TypeError):
        return "none"


def _short(number: Any) -> str:
    """What is not a number has no digits."""
    return f"{number:.4g}" if isinstance(number, int | float) else "not finite"


def _table(heads: Sequence[str], rows: Iterable[Sequence[Any]]) -> str:
    head = "".join(f"<th>{escape(text)}</th>" for text in heads)
    body = "".join("<tr>" + "".join(f"<td>{escape(str(cell))}</td>" for cell in row) + "</tr>" for row in rows)
    return f"<table>{f'<tr>{head}</tr>' if head else ''}{body}</table>"


def _figure(title: str, lines: dict[str, Curve]) -> str:
    """Curves as a drawing inside the page, with what they say in words."""
    # Text stays outlines: nobody's run name becomes markup, and no font is looked for.
    with mpl.rc_context({"svg.fonttype": "path", "svg.hashsalt": "maxplore"}):
        figure = Figure(figsize=(9, 3), layout="constrained")
        axes = figure.add_subplot()
        for name, curve in lines.items():
            axes.plot(*zip(*curve, strict=True), label=name.replace("$", r"\$"))
        axes.set_xlabel("step")
        axes.set_title(title)
        if len(lines) > 1:
            axes.legend()
        buffer = io.StringIO()
        figure.savefig(buffer, format="svg", metadata={"Date": None})
    drawing = buffer.getvalue()
    words = "; ".join(f"{name}: from {curve[0][1]:.3g} to {curve[-1][1]:.3g}" for name, curve in lines.items())
    label = escape(f"{title}. {words}", quote=True)
    return f'<figure role="img" aria-label="{label}">{drawing[drawing.index("<svg") :]}</figure>'
