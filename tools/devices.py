"""Writes what devices are worth into docs/devices.md: `python -m tools.devices`."""

import json
import sys
from typing import Any

from tools.claims import ROOT
from tools.continuous import between

PAGE = ROOT / "docs" / "devices.md"


def table(kind: str, heading: str) -> str:
    """The benchmark's ratios of one kind."""
    own = json.loads((ROOT / "results" / "benchmarks" / "devices.json").read_text())

    def cell(ratio: dict[str, float]) -> str:
        return f"{ratio['median']:.2f} ({ratio['least']:.2f} to {ratio['most']:.2f})"

    def row(name: str, each: dict[str, Any]) -> str:
        return f"| {name} | {cell(each['ratio'])} | {cell(each['processor_ratio'])} |"

    rows = [f"| {heading} | by the clock | of processor time |", "|---|---|---|"]
    rows += [row(name, each) for name, each in own[kind].items()]
    load = f"a load of {own['load'][0]:g} on {own['cores']} cores when it began"
    return "\n".join([*rows, "", f"`{own['command']}`: {own[kind + '_is']}; medians of {own['turns']} turns, {load}."])


def written(page: str) -> str:
    """The page with its tables in place."""
    page = between(page, "members", table("members", "members x layers x width"))
    return between(page, "seeds", table("seeds", "seeds"))


def main() -> int:
    PAGE.write_text(written(PAGE.read_text()))
    return 0


if __name__ == "__main__":
    sys.exit(main())
