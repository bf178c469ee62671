"""Writes what durability costs into docs/runs.md: `python -m tools.durability`."""

import json
import sys

from tools.claims import ROOT
from tools.continuous import between

PAGE = ROOT / "docs" / "runs.md"


def table() -> str:
    """The benchmark's figures beside what they may be."""
    own = json.loads((ROOT / "results" / "benchmarks" / "durability.json").read_text())
    share = own["share"]
    return "\n".join(
        [
            "| what | may be | measured |",
            "|---|---|---|",
            f"| recording a step, median | 1 ms | {own['record_ms_median']:.2g} ms |",
            f"| recording a step, 99th percentile | | {own['record_ms_p99']:.2g} ms |",
            f"| recording, of a `fast` Half Cheetah run | 2% | {share['record']:.2%} |",
            f"| all of it, checkpoints and event files included | | {own['share_of_all']:.2%} |",
            f"| digests, a part of these | 2% | {own['share_of_digests']:.2%} |",
            f"| checking a record of 20,000 steps on opening it | 0.5 s | {own['opening_s']:.2g} s |",
            "",
            f"`{own['command']}`, a part of `make bench`; {own['what']}.",
        ]
    )


def written(page: str) -> str:
    """The page with its table in place."""
    return between(page, "durability", table())


def main() -> int:
    PAGE.write_text(written(PAGE.read_text()))
    return 0


if __name__ == "__main__":
    sys.exit(main())
