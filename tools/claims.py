"""Writes the README's table of claims from the results: `python tools/claims.py`, or with `--check` only compares."""

import json
import sys
from pathlib import Path

ROOT = Path(__file__).parent.parent
BEGIN, END = "<!-- claims -->", "<!-- /claims -->"


def table(root: Path = ROOT) -> str:
    """The claims of all committed figures, the many of one kind in a single row."""
    rows = ["| figure | claim | paper | measured | holds |", "|---|---|---|---|---|"]
    for path in sorted(root.glob("results/*/summary.json")):
        summary = json.loads(path.read_text())
        name = f"[{summary['figure']}](results/{path.parent.name}/summary.json), {summary['seeds']} seeds"
        claims = summary["claims"]
        if len(claims) > 12:  # one claim for each of many lengths
            held = sum(claim["holds"] for claim in claims)
            worst = max(claim["measured"] for claim in claims)
            what = f"{claims[0]['claim']}, and so on: {len(claims)} claims, worst value shown"
            rows.append(f"| {name} | {what} | {claims[0]['paper']} | {worst:g} | {held} of {len(claims)} |")
            continue
        for claim in claims:
            measured = "never" if claim["measured"] is None else f"{claim['measured']:g}"
            verdict = "yes" if claim["holds"] else "**no**"
            rows.append(f"| {name} | {claim['claim']} | {claim['paper']} | {measured} | {verdict} |")
    return "\n".join(rows)


def written(readme: str, root: Path = ROOT) -> str:
    """The README with the table in its place."""
    before, rest = readme.split(BEGIN)
    _, after = rest.split(END)
    return f"{before}{BEGIN}\n{table(root)}\n{END}{after}"


def main() -> int:
    readme = ROOT / "README.md"
    text = readme.read_text()
    new = written(text)
    if "--check" in sys.argv:
        return int(new != text)
    readme.write_text(new)
    return 0


if __name__ == "__main__":
    sys.exit(main())
