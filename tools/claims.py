"""Writes the tables of docs/chain.md from the results: `python tools/claims.py`, or with `--check` only compares."""

import json
import math
import statistics
import sys
from pathlib import Path

ROOT = Path(__file__).parent.parent
BEGIN, END = "<!-- claims -->", "<!-- /claims -->"


def table(root: Path = ROOT) -> str:
    """The claims of all committed figures, the many of one kind in a single row."""
    rows = ["| figure | claim | paper | measured | holds |", "|---|---|---|---|---|"]
    for path in sorted(root.glob("results/*/summary.json")):
        summary = json.loads(path.read_text())
        name = f"[{summary['figure']}](../results/{path.parent.name}/summary.json), {summary['seeds']} seeds"
        claims = summary["claims"]
        if len(claims) > 12:  # one claim for each of many lengths
            held = sum(claim["holds"] for claim in claims)
            worst = max(math.inf if claim["measured"] is None else claim["measured"] for claim in claims)
            what = f"{claims[0]['claim']}, and so on: {len(claims)} claims, worst value shown"
            rows.append(f"| {name} | {what} | {claims[0]['paper']} | {worst:g} | {held} of {len(claims)} |")
            continue
        for claim in claims:
            measured = "never" if claim["measured"] is None else f"{claim['measured']:g}"
            verdict = "yes" if claim["holds"] else "**no**"
            rows.append(f"| {name} | {claim['claim']} | {claim['paper']} | {measured} | {verdict} |")
    return "\n".join(rows)


def needed(root: Path = ROOT) -> str:
    """Episodes that each line of the main figure needed to explore everything."""
    summary = json.loads((root / "results" / "chain" / "summary.json").read_text())
    rows = [f"| episodes to 100%, {summary['seeds']} seeds | median | 75th percentile | most |", "|---|---|---|---|"]
    for line, values in summary["episodes_needed"].items():
        order = sorted(math.inf if value is None else value for value in values)
        shown = (statistics.median(order), order[math.ceil(0.75 * (len(order) - 1))], order[-1])
        rows.append(f"| {line} | {' | '.join('never' if math.isinf(x) else f'{x:g}' for x in shown)} |")
    return "\n".join(rows)


def written(page: str, root: Path = ROOT) -> str:
    """The page with its tables in their place."""
    before, rest = page.split(BEGIN)
    _, after = rest.split(END)
    return f"{before}{BEGIN}\n{needed(root)}\n\n{table(root)}\n{END}{after}"


def main() -> int:
    page = ROOT / "docs" / "chain.md"
    text = page.read_text()
    new = written(text)
    if "--check" in sys.argv:
        return int(new != text)
    page.write_text(new)
    return 0


if __name__ == "__main__":
    sys.exit(main())
