"""A figure from one command: numbers, claims, pictures; and one clear line for what cannot be."""

import json

import numpy as np
import pytest

from maxplore.cli import main
from maxplore.experiments import EXPERIMENTS
from maxplore.experiments.spec import episodes_needed


def test_a_figure_is_written_with_its_numbers_and_its_claims(tmp_path, capsys):
    assert main(["reproduce", "chain-trap", "--seeds", "1", "--episodes", "5", "--out", str(tmp_path / "new")]) == 0
    summary = json.loads((tmp_path / "new" / "summary.json").read_text())
    assert {"figure", "command", "version", "config", "seeds", "claims", "curves"} < set(summary)
    assert summary["command"] == "maxplore reproduce chain-trap --seeds 1 --episodes 5"
    assert {"MAX", "MAX, trap", "oracle"} < set(summary["curves"]) == set(summary["episodes_needed"])
    for curve in summary["curves"].values():
        assert len(curve["x"]) == len(curve["median"]) == len(curve["p25"]) == len(curve["p75"]) == 5
    for suffix in ("png", "svg"):
        assert (tmp_path / "new" / f"chain-trap.{suffix}").stat().st_size > 1000
    told = capsys.readouterr().out
    assert all(claim["claim"] in told for claim in summary["claims"])


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["reproduce", "chian"], "figure is 'chian', expected one of chain, chain-lengths"),
        (["reproduce", "chain", "--seeds", "0"], "--seeds is 0, expected at least 1"),
    ],
)
def test_bad_input_gets_one_line_and_a_non_zero_exit(arguments, message, capsys, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert main(arguments) == 2
    told = capsys.readouterr().err
    assert message in told
    assert told.count("\n") == 1
    assert list(tmp_path.iterdir()) == [], "nothing half-written"


def test_list_and_version(capsys):
    assert main(["list"]) == 0
    told = capsys.readouterr().out
    assert all(name in told for name in EXPERIMENTS)
    assert main(["--version"]) == 0
    assert capsys.readouterr().out.strip()


def test_episodes_are_counted_from_one_and_never_is_infinite():
    shares = np.array([[0.5, 1.0, 1.0], [1.0, 1.0, 1.0], [0.1, 0.2, 0.3]])
    assert episodes_needed(shares).tolist() == [2.0, 1.0, np.inf]
    assert episodes_needed(shares, 0.2).tolist() == [1.0, 1.0, 2.0]
