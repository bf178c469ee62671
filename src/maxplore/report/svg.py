"""Drawings as text: scales, ticks, frames. What they are coloured in is the style sheet's."""

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from html import escape

import matplotlib as mpl
import numpy as np
from matplotlib.colors import to_hex

PALETTE = [to_hex(mpl.colormaps["viridis"](k / 63)) for k in range(64)]
"""From little to much; people who are blind to some colours can tell these apart, and so can a grey printer."""


Number = int | float


@dataclass(frozen=True)
class Scale:
    """Numbers from `low` to `high` as places from `begin` to `end`."""

    low: float
    high: float
    begin: float
    end: float
    log: bool = False

    def __call__(self, value: Number) -> float:
        low, high, own = map(math.log10, (self.low, self.high, value)) if self.log else (self.low, self.high, value)
        return self.begin + (self.end - self.begin) * (own - low) / (high - low)

    @property
    def ticks(self) -> list[float]:
        """Round numbers within, about five of them."""
        if self.log:
            powers = range(math.ceil(math.log10(self.low) - 1e-9), math.floor(math.log10(self.high) + 1e-9) + 1)
            return [10.0**power for power in powers][:: max(1, len(powers) // 4)]
        return round_numbers(self.low, self.high)


def scale(values: Iterable[Number], begin: float, end: float, *, log: bool = False, room: float = 0.0) -> Scale:
    """A scale for all of them, with so much room on either side, as a share; a single value lies in its middle."""
    own = [float(value) for value in values]
    low, high = min(own), max(own)
    if log:
        low, high = 10.0 ** math.floor(math.log10(low) + 1e-9), 10.0 ** math.ceil(math.log10(high) - 1e-9)
        return Scale(low, high if high > low else 10 * low, begin, end, log=True)
    more = room * (high - low) if high > low else (abs(low) or 1.0) / 2
    return Scale(low - more if low else 0.0 if high > 0 else -more, high + more, begin, end)


def round_numbers(low: Number, high: Number, about: int = 5) -> list[float]:
    """Numbers with few digits from low to high.

    >>> round_numbers(-1.2, 0.6)
    [-1.0, -0.5, 0.0, 0.5]
    """
    rough = (high - low) / about
    if not (rough > 0 and math.isfinite(rough)):
        return [low]
    power = 10.0 ** math.floor(math.log10(rough))
    step = next(power * factor for factor in (1, 2, 5, 10) if power * factor >= rough * 0.9999)
    first, last = math.ceil(low / step - 1e-9), math.floor(high / step + 1e-9)
    return [round(k * step, 12 - math.floor(math.log10(step))) + 0.0 for k in range(first, last + 1)]


def short(value: Number) -> str:
    """A number for a tick.

    >>> short(20000.0), short(0.25), short(1e-7), short(-3.0)
    ('20,000', '0.25', '1e-07', '-3')
    """
    if value == 0:
        return "0"
    return f"{value:,.0f}" if 1000 <= abs(value) < 1e6 else f"{value:.4g}"


def drawing(width: Number, height: Number, inside: str, label: str, kind: str = "") -> str:
    """A picture with what it shows in words."""
    return (
        f'<svg viewBox="0 0 {width:g} {height:g}" role="img" class="{kind}" aria-label="{escape(label)}">{inside}</svg>'
    )


def text(x: Number, y: Number, words: str, kind: str, turn: bool = False) -> str:
    """Words at a place; turned, they read upwards."""
    turned = f' transform="rotate(-90 {x:.1f} {y:.1f})"' if turn else ""
    return f'<text x="{x:.1f}" y="{y:.1f}" class="{kind}"{turned}>{escape(words)}</text>'


def frame(x: Scale, y: Scale, x_title: str, y_title: str = "") -> str:
    """Axes with ticks and lines across."""
    left, right, bottom, top = x.begin, x.end, y.begin, y.end
    parts: list[str] = []
    for value in y.ticks:
        at = y(value)
        parts.append(f'<path class="across" d="M{left:.1f} {at:.1f}H{right:.1f}"/>')
        parts.append(text(left - 6, at + 4, short(value), "tick end"))
    for value in x.ticks:
        at = x(value)
        parts.append(f'<path class="axis" d="M{at:.1f} {bottom:.1f}v4"/>')
        parts.append(text(at, bottom + 17, short(value), "tick middle"))
    parts.append(f'<path class="axis" d="M{left:.1f} {bottom:.1f}H{right:.1f}"/>')
    parts.append(text((left + right) / 2, bottom + 34, x_title, "title middle"))
    if y_title:
        parts.append(text(12, (top + bottom) / 2, y_title, "title middle", turn=True))
    return "".join(parts)


def path(points: Sequence[tuple[Number, Number]]) -> str:
    """The `d` of a line through these."""
    return "M" + "L".join(f"{x:.1f} {y:.1f}" for x, y in points)


def colour(share: Number) -> str:
    """Of a number between 0 and 1; more is as 1, less is as 0."""
    return PALETTE[min(max(math.floor(share * 64), 0), 63)]


def bar(x: Number, top: Number, bottom: Number, labels: Sequence[str], title: str) -> str:
    """A colour bar with its labels from the bottom up, evenly spaced, and what it measures."""
    step = (bottom - top) / len(PALETTE)
    ramp = "".join(
        f'<rect x="{x:.1f}" y="{bottom - (k + 1) * step:.2f}" width="12" height="{step + 0.4:.2f}" fill="{own}"/>'
        for k, own in enumerate(PALETTE)
    )
    parts = [f'<g class="ramp">{ramp}</g>']
    for k, label in enumerate(labels):
        at = bottom - (bottom - top) * k / (len(labels) - 1)
        parts.append(text(x + 17, at + 4, label, "tick bar"))
    parts.append(text(x + 68, (top + bottom) / 2, title, "title middle", turn=True))
    return "".join(parts)


def bar_labels(low: Number, high: Number) -> list[str]:
    """Five numbers for a colour bar; beyond its ends colours do not change."""
    step = (high - low) / 4
    digits = 1 + math.ceil(-math.log10(step)) if step > 0 else 9
    own = [f"{value:.{max(digits, 0)}f}" if digits < 6 else f"{value:.2g}" for value in np.linspace(low, high, 5)]
    return [*own[:-1], f"≥{own[-1]}"]
