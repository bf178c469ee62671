"""How a run learned, drawn from its record."""

import math
from collections import defaultdict
from pathlib import Path

from matplotlib.figure import Figure

from maxplore.runs import files
from maxplore.runs.record import Record

CURVES = {
    "utility": "utility that plans promise",
    "saturation": "utility as a share of the most that it can be",
    "coverage": "coverage",
    "error": "model error on rows held out",
    "nll": "negative log likelihood on rows held out",
    "calibration": "share inside the middle 80% (0.8 is right)",
}
"""Metrics that are drawn."""

Curve = list[tuple[int, float]]


def curves(record: Record) -> dict[str, Curve]:
    """Points of every metric that is drawn, as far as they are numbers."""
    found: defaultdict[str, Curve] = defaultdict(list)
    for step, name, value in record.metrics():
        if name in CURVES and math.isfinite(value):
            found[name].append((step, value))
    return {name: found[name] for name in CURVES if name in found}


def draw(record: Record, path: Path) -> bool:
    """A picture of all curves; whether there was anything to draw."""
    found = curves(record)
    if not found:
        return False
    figure = Figure(figsize=(7, 2.2 * len(found)), layout="constrained")
    for axes, (name, curve) in zip(figure.subplots(len(found), squeeze=False)[:, 0], found.items(), strict=True):
        axes.plot(*zip(*curve, strict=True), marker="." if len(curve) < 30 else None)
        axes.set_title(CURVES[name], fontsize="medium")
        axes.set_xlabel("step")
    with files.placed(path) as file:
        figure.savefig(file, format="png", dpi=120)
    return True
