"""Writes what the figures say into the pages: `python -m tools.claims`, or with `--check` only compares.

Every claim goes to docs/chain.md, one row for each figure to the README and to docs/reproduce.md.
"""

import json
import math
import statistics
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

from maxplore.experiments import EXPERIMENTS
from tools.continuous import between

ROOT = Path(__file__).parent.parent


def table(root: Path = ROOT, *, of_chain: bool = True) -> str:
    """The claims of all committed figures of the Chain, or of the others; the many of one kind in a single row."""
    rows = ["| figure | claim | paper | holds if | measured | holds |", "|---|---|---|---|---|---|"]
    for path in sorted(root.glob("results/*/summary.json")):
        if path.parent.name.startswith("chain") != of_chain:
            continue
        summary = json.loads(path.read_text())
        name = f"[{summary['figure']}](../results/{path.parent.name}/summary.json), {_size(summary)}"
        claims, left = summary["claims"], summary.get("not_judged", [])
        if len(claims) > 12:  # one claim for each of many lengths
            worst = max(math.inf if claim["measured"] is None else claim["measured"] for claim in claims)
            what = f"{claims[0]['claim']}, and so on: {len(claims)} claims, worst value shown"
            cells = (name, what, claims[0]["paper"], holds_if(summary, claims[0]), f"{worst:g}", _held(summary))
            rows.append(f"| {' | '.join(cells)} |")
            continue
        for claim in (*claims, *left):
            judged = claim["holds"] is not None
            verdict = ("yes" if claim["holds"] else "**no**") if judged else f"not judged: {claim['why']}"
            cells = (
                claim["claim"],
                claim["paper"],
                holds_if(summary, claim),
                _measured(claim) if judged else "",
                verdict,
            )
            rows.append(f"| {name} | {' | '.join(cells)} |")
    return "\n".join(rows)


def holds_if(summary: dict[str, Any], claim: dict[str, Any]) -> str:
    """What it took for a claim to hold; of a figure that was made before that was written down, what it takes now."""
    now = {own.claim: own.judge.holds_if for own in EXPERIMENTS[summary["figure"]].claims}
    return claim.get("holds_if", now[claim["claim"]])


def _held(summary: dict[str, Any]) -> str:
    """How many claims hold, of how many."""
    claims, left = summary["claims"], summary.get("not_judged", [])
    if not claims and not left:
        return "states none"
    more = f", {len(left)} not judged" if left else ""
    return f"{sum(claim['holds'] for claim in claims)} of {len(claims)}{more}"


def _size(summary: dict[str, Any]) -> str:
    """Of a figure, in words."""
    steps = f", {summary['steps']:,} steps" if "steps" in summary else ""
    return f"{summary['seeds']} seeds{steps}"


def _measured(claim: dict[str, Any]) -> str:
    """What was found, with its interval where there is one."""
    found = "never" if claim["measured"] is None else f"{claim['measured']:g}"
    return f"{found} [{', '.join(f'{end:g}' for end in claim['interval'])}]" if "interval" in claim else found


def needed(root: Path = ROOT) -> str:
    """Episodes that each line of the main figure needed to explore everything."""
    summary = json.loads((root / "results" / "chain" / "summary.json").read_text())
    rows = [f"| episodes to 100%, {summary['seeds']} seeds | median | 75th percentile | most |", "|---|---|---|---|"]
    for line, values in summary["episodes_needed"].items():
        order = sorted(math.inf if value is None else value for value in values)
        shown = (statistics.median(order), order[math.ceil(0.75 * (len(order) - 1))], order[-1])
        rows.append(f"| {line} | {' | '.join('never' if math.isinf(x) else f'{x:g}' for x in shown)} |")
    return "\n".join(rows)


def in_short(root: Path = ROOT) -> str:
    """The table of the README: the first claim of every figure that has any, and how many of all of them hold."""
    rows = ["| figure | the first of its claims | paper | measured | claims that hold |", "|---|---|---|---|---|"]
    for path in sorted(root.glob("results/*/summary.json")):
        summary = json.loads(path.read_text())
        claims = summary["claims"]
        if claims:
            name = f"[{summary['figure']}](results/{path.parent.name}/summary.json), {_size(summary)}"
            first = claims[0]
            rows.append(f"| {name} | {first['claim']} | {first['paper']} | {_measured(first)} | {_held(summary)} |")
    return "\n".join(rows)


def commands(root: Path = ROOT) -> str:
    """The tables of docs/reproduce.md: every figure that is shipped, and the claims of those that no page has."""
    rows = ["| figure | command | claims that hold |", "|---|---|---|"]
    for path in sorted(root.glob("results/*/summary.json")):
        summary = json.loads(path.read_text())
        name, folder = summary["figure"], f"../results/{path.parent.name}"
        judged = f"[{_held(summary)}]({folder}/summary.json)" if summary["claims"] else _held(summary)
        rows.append(f"| [{name}]({folder}/{name}.png) | `{summary['command']}` | {judged} |")
    others = table(root, of_chain=False)
    return "\n".join([*rows, "", others] if others.count("\n") > 1 else rows)


def written(page: str, root: Path = ROOT) -> str:
    """docs/chain.md with its tables in their place."""
    return between(page, "claims", f"{needed(root)}\n\n{table(root)}")


PAGES: dict[str, Callable[[str], str]] = {
    "docs/chain.md": written,
    "docs/reproduce.md": lambda page: between(page, "figures", commands()),
    "README.md": lambda page: between(page, "results", in_short()),
}
"""What is written where."""


def main() -> int:
    stale = 0
    for name, made in PAGES.items():
        page = ROOT / name
        text = page.read_text()
        new = made(text)
        stale += new != text
        if "--check" not in sys.argv:
            page.write_text(new)
    return int(bool(stale)) if "--check" in sys.argv else 0


if __name__ == "__main__":
    sys.exit(main())
