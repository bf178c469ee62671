"""Every figure from end to end, at a size that only shows that everything works."""

import json
from typing import Any

import numpy as np
import pytest

from maxplore.experiments import EXPERIMENTS, ant_maze, half_cheetah, mountain_car
from maxplore.experiments.kept import Seen
from maxplore.experiments.spec import judged
from maxplore.experiments.swept import marks_within, of_seeds
from maxplore.runs.directory import Folder
from maxplore.sweep import Outcome
from maxplore_cli import main


def test_every_figure_is_made_from_end_to_end(tmp_path, capsys):
    assert main(["reproduce", "all", "--preset", "smoke", "--out", str(tmp_path)]) == 0
    for name in EXPERIMENTS:
        check_files(tmp_path / name, name)
    check_tasks(json.loads((tmp_path / "half-cheetah" / "summary.json").read_text()))
    check_more_seeds(tmp_path / "mountain-car", capsys)


TOO_SMALL = ("chain-grid", "chain-lengths", "chain-robustness", "half-cheetah")
"""Figures that state nothing, or of which smoke runs too little to judge anything."""


def check_files(folder, name):
    """Numbers, claims and pictures."""
    summary = json.loads((folder / "summary.json").read_text())
    assert summary["figure"] == name
    assert summary["command"] == f"maxplore reproduce {name} --preset smoke --seeds 1"
    assert summary["curves"]
    for curve in summary["curves"].values():
        assert len({len(curve[key]) for key in ("x", "median", "p25", "p75")}) == 1
    for claim in summary["claims"]:
        assert set(claim) - {"interval"} == {"claim", "paper", "holds_if", "measured", "holds"}
    for claim in summary["not_judged"]:
        assert claim["why"]
    assert not summary.get("failed")
    states = [claim.claim for claim in EXPERIMENTS[name].claims]
    assert {claim["claim"] for claim in summary["claims"] + summary["not_judged"]} == set(states)
    assert summary["claims"] or name in TOO_SMALL
    assert (folder / f"{name}.png").read_bytes().startswith(b"\x89PNG")
    assert "<svg" in (folder / f"{name}.svg").read_text()[:1000]
    others = {
        "runs",
        "trials",
        "grid.jsonl",
        "shares.jsonl",
        "oracle-running-1050-1000.json",
        "oracle-flipping-1050-1000.json",
    }
    files = {file.name for file in folder.iterdir()} - others
    assert files == {f"{name}.png", f"{name}.svg", "summary.json"}, "nothing half-written"


def check_tasks(summary):
    """Returns are those of the run."""
    assert set(summary["returns"]) == {"max"}
    assert set(summary["returns"]["max"]) == set(summary["oracle"]) == {"running", "flipping"}
    assert summary["curves"]["running, max"]["x"] == [60]
    average = np.mean([summary["returns"]["max"][task][0][0] for task in ("running", "flipping")])
    np.testing.assert_allclose(summary["curves"]["average, max"]["mean"], [average], atol=0.01)


def check_more_seeds(folder, capsys):
    """They are added, and none is run again."""
    own = folder / "runs" / "max-1000"
    first, before = Folder(own).read_config().name, (own / "run.sqlite").read_bytes()
    assert main(["reproduce", "mountain-car", "--preset", "smoke", "--seeds", "2", "--out", str(folder)]) == 0
    assert "2 of 4 runs are there already" in capsys.readouterr().out
    assert Folder(own).read_config().name == first
    assert (own / "run.sqlite").read_bytes() == before
    assert json.loads((folder / "summary.json").read_text())["seeds"] == 2


def test_the_maze_is_explored_cell_by_cell():
    places = [(0, 0), (0.1, 2.1), (9, 9), (0, 4), (2, 4), (0, 2)]
    run = Seen(np.array(places, np.float32), np.array([0, 0, 0, 1, 1, 1]))
    np.testing.assert_allclose(ant_maze.explored(run, np.array([1, 2, 3, 4, 5, 6])), np.array([1, 2, 2, 3, 4, 4]) / 7)
    x, y, when = np.array(ant_maze.positions([run], 6)).T
    np.testing.assert_allclose([x, y], np.array(places).T, atol=1e-3)
    np.testing.assert_allclose(when, np.array([0, 1, 2, 0, 1, 2]) / 300, atol=1e-3)


def test_the_flag_and_the_cells():
    states = np.array([[-0.5, 0.0], [0.44, 0.0], [0.46, 0.01], [0.5, 0.0]])
    assert mountain_car.first_at_flag(states) == 3
    assert mountain_car.first_at_flag(states[:2]) == np.inf
    assert mountain_car.covered(states) == 4
    assert mountain_car.covered(np.repeat(states[:1], 9, axis=0)) == 1


def found(final: dict[str, list[np.ndarray]], steps: int = 20_000) -> dict[str, dict[str, Any]]:
    return {claim["claim"]: claim for claim in judged(half_cheetah.CLAIMS, final, steps)}


def returns(running: list[float], flipping: list[float]) -> list[np.ndarray]:
    return [np.array(running), np.array(flipping)]


GOOD = {
    "max": returns([400, 380, 420], [600, 610, 620]),
    "random": returns([350, 360, 340], [10, 0, -10]),
    "oracle": returns([440], [800]),
}


def test_claims_about_tasks_are_judged_over_seeds():
    told = found(GOOD)
    assert sum(claim["holds"] is None for claim in told.values()) == 6, "of methods that did not run nothing is told"
    assert all(claim["holds"] for claim in told.values() if claim["holds"] is not None)
    assert told["our target for MAX after 20,000 steps, running: mean return"]["measured"] == 400.0
    sufficient = told["random actions suffice for running: share of the oracle's return"]
    np.testing.assert_allclose(sufficient["measured"], 350 / 440, atol=1e-4)
    worse = {"max": returns([9, 12, 10], [5, 8, -9]), "random": returns([0] * 3, [1] * 3), "oracle": returns([1], [1])}
    assert not any(claim["holds"] for claim in found(worse).values())
    few = {name: [own[:2] for own in each] for name, each in GOOD.items()}
    assert not any(claim["holds"] for claim in found(few).values()), "two seeds tell nothing"


def test_a_target_is_judged_at_the_steps_that_it_is_about():
    early = found(GOOD, 10_000)["our target for MAX after 20,000 steps, running: mean return"]
    assert early["holds"] is None
    assert early["why"] == "the figure goes to 10,000"


def test_a_task_with_large_rewards_counts_for_no_more_than_another():
    """What MAX gains on flipping, as a share of the oracle's return, it loses on running."""
    final = {
        "max": returns([0] * 3, [800] * 3),
        "jdrx": returns([440] * 3, [0] * 3),
        "oracle": returns([440], [800]),
    }
    told = found(final)["MAX beats JDRX: share of the oracle's return gained, both tasks"]
    assert told["measured"] == 0.0
    assert not told["holds"]
    final["oracle"] = returns([-1], [800])
    told = found(final)["MAX beats JDRX: share of the oracle's return gained, both tasks"]
    assert told["holds"] is None, "an oracle that has learned nothing is no measure"
    assert told["why"] == "what was measured is no number"


def test_no_method_hides_behind_another():
    """MAX is quick, TVAX is not: in the mean they would be quicker than both reactive methods."""
    areas = {"max": 0.9, "tvax": 0.4, "jdrx": 0.5, "perx": 0.6, "random": 0.3}
    told = judged(ant_maze.CLAIMS, {name: [np.full(3, area), np.ones(3)] for name, area in areas.items()})
    assert [claim["claim"].split(":")[0] for claim in told if not claim["holds"]] == [
        "TVAX is quicker than JDRX",
        "TVAX is quicker than PERX",
        "JDRX is quicker than PERX",
    ]


def test_a_figure_says_how_many_runs_it_is_made_of():
    assert of_seeds({"runs": {"max": 3, "random": 3}}) == "3 seeds"
    assert of_seeds({"runs": {"max": 1}}) == "1 seed"
    assert of_seeds({"runs": {"max": 2, "random": 3}}) == "2 to 3 seeds", "one has failed"


@pytest.mark.parametrize(
    ("steps", "marks"), [(800, (100, 150, 220, 800)), (200, (100, 150)), (110, (55, 110)), (60, (30, 60)), (1, (1,))]
)
def test_marks_are_the_papers_as_far_as_they_go(steps, marks):
    assert marks_within(mountain_car.MARKS, steps) == marks


def test_a_run_that_failed_is_told_and_left_out(tmp_path, monkeypatch, capsys):
    good = tmp_path / "figure"
    asked = ["reproduce", "ant-maze", "--steps", "5", "--methods", "random", "--out", str(good), "--seeds"]
    assert main([*asked, "1"]) == 0

    def failing(trials, folder, **_):
        return [Outcome(name, name == "random-1000", "it fell") for name in trials]

    monkeypatch.setattr("maxplore.experiments.swept.run_all", failing)
    assert main([*asked, "2"]) == 3
    assert "random-1001 failed and is left out: it fell" in capsys.readouterr().err
    summary = json.loads((good / "summary.json").read_text())
    assert (summary["runs"], summary["failed"]) == ({"random": 1}, {"random-1001": "it fell"})


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (
            ["half-cheetah", "--methods", "max", "maxx"],
            "half-cheetah: --methods has 'maxx', expected some of max, tvax",
        ),
        (["ant-maze", "--methods"], "ant-maze: --methods has '', expected some of max"),
        (["mountain-car", "--methods", "max"], "mountain-car: --methods is no option of this figure"),
        (["chain", "--steps", "5"], "chain: --steps is no option of this figure, expected one of --seeds, --episodes"),
        (["ant-maze", "--steps", "0"], "--steps is 0, expected"),
        (["chain", "--preset", "tiny"], "--preset is 'tiny', expected one of fast, paper, smoke"),
        (["all", "--configs", "2"], "chain: --configs is no option of this figure"),
    ],
)
def test_bad_sizes_are_one_line(arguments, message, capsys, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert main(["reproduce", *arguments]) == 2
    told = capsys.readouterr().err
    assert message in told
    assert told.count("\n") == 1
    assert list(tmp_path.iterdir()) == []
