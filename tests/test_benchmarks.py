"""The scripts in benchmarks/ can be run as they are."""

import sys
from pathlib import Path

BENCHMARKS = Path(__file__).parent.parent / "benchmarks"


def test_no_benchmark_has_the_name_of_a_standard_module():
    """A script's folder is the first that its process looks in: `profile.py` kept PyTorch from being imported there."""
    names = {file.stem for file in BENCHMARKS.glob("*.py")}
    assert len(names) > 10
    assert not names & sys.stdlib_module_names
