"""What the pages say is what the results say."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from maxplore import Forecast
from maxplore.experiments import EXPERIMENTS, kept
from maxplore.sweep import Trial
from tools import claims, continuous, costs, defaults, devices, durability, exploitation, scaling
from tools.claims import ROOT

RESULTS = sorted((ROOT / "results").glob("*/summary.json"))


@pytest.mark.parametrize("name", claims.PAGES)
def test_the_tables_are_those_of_the_results(name: str):
    page = (ROOT / name).read_text()
    assert claims.PAGES[name](page) == page, "run python -m tools.claims"


@pytest.mark.parametrize("path", RESULTS, ids=lambda path: path.parent.name)
def test_every_figure_has_its_pictures_its_command_and_its_numbers(path: Path):
    summary = json.loads(path.read_text())
    name = summary["figure"]
    assert name == path.parent.name
    assert summary["command"].startswith(f"maxplore reproduce {name} --seeds {summary['seeds']}")
    assert all({"x", "median", "p25", "p75"} <= set(curve) for curve in summary["curves"].values())
    own = {"claim", "paper", "measured", "holds"}
    assert all(own == set(claim) - {"interval", "holds_if"} for claim in summary["claims"])
    told = summary["claims"] + summary.get("not_judged", [])
    stated = {claim.claim: claim.judge.holds_if for claim in EXPERIMENTS[name].claims}
    assert {claim["claim"] for claim in told} == set(stated), "what the code states is what was judged"
    assert all(claim.get("holds_if", stated[claim["claim"]]) == stated[claim["claim"]] for claim in told)
    for suffix in ("png", "svg"):
        assert (path.parent / f"{name}.{suffix}").stat().st_size > 1000


def test_the_continuous_tables_are_those_of_the_benchmarks():
    page, short = ((ROOT / name).read_text() for name in ("docs/continuous.md", "docs/choosing.md"))
    assert continuous.written(page) == page, "run python -m tools.continuous"
    assert continuous.between(short, "continuous", continuous.in_short()) == short, "run python -m tools.continuous"


def test_the_costs_are_those_of_the_benchmarks():
    page = costs.PAGE.read_text()
    assert costs.written(page) == page, "run python -m tools.costs"
    assert 1 < costs.paper_days() < 100


@pytest.mark.parametrize("path", exploitation.PAGES, ids=lambda path: path.stem)
def test_the_tables_of_exploitation_are_those_of_the_benchmarks(path: Path):
    assert exploitation.written(path) == path.read_text(), "run python -m tools.exploitation"


def test_what_trials_were_paid_is_beside_what_was_promised(tmp_path):
    """Of one seed two of three episodes lie in the interval, of the other all; methods come as the paper has them."""
    assert exploitation.cheetah(tmp_path) == exploitation.NOT_YET
    folder = tmp_path / "results" / "half-cheetah" / "trials"
    folder.mkdir(parents=True)
    paid = {("random", 1010): [0.0] * 3, ("max", 1010): [310.0, 324.0, 90.5], ("max", 1011): [260.0] * 3}
    for (method, seed), returns in paid.items():
        trial = Trial("maxplore/HalfCheetah-v0", method, seed, 20, tasks=("running",), after=(20,))
        states, promised = np.zeros((20, 0), np.float32), {("running", 20): Forecast(320.0, 250.0, 380.0)}
        seen = kept.Seen(states, np.zeros(20, np.int32), {("running", 20): returns}, promised)
        kept.write(folder / f"{method}-{seed}.npz", trial, (), seen)
    *_, of_max, of_random, _, share = exploitation.cheetah(tmp_path).splitlines()
    assert of_max == "| running | 20 | max | 251 | 242, 260 | 83% |"
    assert of_random == "| running | 20 | random | 0 | 0 | 0% |"
    assert share == "Inside, of all 9 episodes: 56%; to reach: 70%."


def test_rows_of_other_settings_are_told_apart(tmp_path):
    folder = tmp_path / "results" / "benchmarks"
    folder.mkdir(parents=True)

    def rows(**more: Any) -> str:
        same = {"task": "running", "method": "max", "seed": 1, "returns": [1.0, 3.0], "inside": 1.0, "guard": "none"}
        changed = [{"explored_with": []}, {"explored_with": ["dither=0.25"]}]
        return json.dumps({"runs": [same | more | each for each in changed]})

    (folder / "guards.json").write_text(rows(as_learned=[0.0, 1.0]))
    assert exploitation.guards(tmp_path).splitlines()[2:] == [
        "| max | none | 2 (1:&nbsp;2) | 0.5 | 100% |  |  |  |",
        "| max, dither=0.25 | none | 2 (1:&nbsp;2) | 0.5 | 100% |  |  |  |",
    ]
    both = [json.loads(rows(**more))["runs"][0] for more in ({}, {"returns": [5.0, 7.0], "explored_anew": True})]
    (folder / "guards.json").write_text(json.dumps({"runs": both}))
    assert exploitation.guards(tmp_path).splitlines()[2:] == [
        "| max | none | 4 (1:&nbsp;2, 1 anew:&nbsp;6) |  | 100% |  |  |  |"
    ]
    rated = [{"episodes": 0, "returns": [1.0, 3.0], "mean": 2.0}]
    (folder / "refinement.json").write_text(rows(rated=rated, settings=["solver_episodes=3"]))
    assert exploitation.refined(tmp_path).splitlines()[2:] == [
        "| running, solver_episodes=3 | max | 1 | 2 (1, 3) |",
        "| running, solver_episodes=3 | max, dither=0.25 | 1 | 2 (1, 3) |",
    ]


def test_the_cost_of_durability_is_that_of_the_benchmark():
    page = durability.PAGE.read_text()
    assert durability.written(page) == page, "run python -m tools.durability"


def test_the_scores_of_defaults_are_those_of_the_benchmark():
    page = defaults.PAGE.read_text()
    assert defaults.written(page) == page, "run python -m tools.defaults"


def test_what_devices_are_worth_is_what_the_benchmark_says():
    page = devices.PAGE.read_text()
    assert devices.written(page) == page, "run python -m tools.devices"


def test_the_tables_of_scaling_are_those_of_the_benchmarks():
    page = scaling.PAGE.read_text()
    assert scaling.written(page) == page, "run python -m tools.scaling"


def test_trials_that_were_given_up_are_told_for_every_number_of_workers(tmp_path):
    def row(workers: int, given_up: int) -> dict[str, Any]:
        names = ("over_least", "losses", "starting", "again", "idle", "hours", "loop_ms")
        figures = {**dict.fromkeys(names, 0.0), "given_up": given_up}
        spread = {name: dict.fromkeys(("median", "lowest", "highest"), value) for name, value in figures.items()}
        return {"case": "nodes fail", "workers": workers, **spread}

    folder = tmp_path / "results" / "benchmarks"
    folder.mkdir(parents=True)
    rows = [row(100, 3), row(1000, 0)]
    (folder / "scheduler.json").write_text(json.dumps({"trials": 10, "seeds": 1, "rows": rows}))
    told = [line for line in scaling.scheduler(tmp_path).splitlines() if line.startswith("| nodes fail")]
    assert [line.split(" | ")[-1] for line in told] == ["3 |", "0 |"]
