"""Writes how good the defaults for tasks are into docs/choosing.md: `python -m tools.defaults`."""

import json
import sys
from pathlib import Path
from typing import Any

from tools.claims import ROOT
from tools.continuous import between

PAGE = ROOT / "docs" / "choosing.md"


def _cell(row: dict[str, Any] | None, seeds: int) -> str:
    """The score over all seeds, and the worst of them; how many, if some were not run."""
    if row is None:
        return ""
    found = len(row["means"])
    return f"{row['score']:.2f} ({row['worst']:.2f}{f', of {found}' if found < seeds else ''})"


def table(root: Path = ROOT) -> str:
    """A row for each environment: what was explored, and the scores of the default and of other solvers."""
    own = json.loads((root / "results" / "benchmarks" / "defaults.json").read_text())
    rows = ["| environment | steps explored | random | planned on the true dynamics | default | `icem` | `gradient` |"]
    rows.append("|---|---|---|---|---|---|---|")
    for study in own["studies"].values():
        scores = study["scores"]
        cells = [_cell(scores.get(name), len(own["seeds"])) for name in ("default", "icem", "gradient")]
        best, least = f"{study['reference']:,.5g}", f"{study['random']:,.5g}"
        rows.append(f"| {study['env']} | {study['steps']:,} | {least} | {best} | {' | '.join(cells)} |")
    return "\n".join(
        [*rows, "", f"`{own['command']}`: {own['what']}; {len(own['seeds'])} seeds, in brackets the worst."]
    )


def written(page: str) -> str:
    """The page with its table in place."""
    return between(page, "defaults", table())


def main() -> int:
    PAGE.write_text(written(PAGE.read_text()))
    return 0


if __name__ == "__main__":
    sys.exit(main())
