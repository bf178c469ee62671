"""A figure from one command: numbers, claims, pictures; and one clear line for what cannot be."""

import json
from dataclasses import replace

import jax
import numpy as np
import pytest

from maxplore.envs import Chain
from maxplore.experiments import EXPERIMENTS, exploration, grid
from maxplore.experiments.behaviour import Behaviour
from maxplore.experiments.exploration import Line, explored_shares, kept_shares
from maxplore.experiments.grid import CHOSEN, GRIDS, Grid, explorer_of, settings_of
from maxplore.experiments.kept import CHANGED
from maxplore.experiments.spec import episodes_needed
from maxplore.explorers import (
    PAPER_MAX,
    BootstrappedDqnExplorer,
    EbDqnExplorer,
    FiniteMaxConfig,
    MaxExplorer,
    OracleExplorer,
    RandomExplorer,
    run,
)
from maxplore.models import MemberConfig
from maxplore_cli import main

SMALL_MODEL = MemberConfig(members=2, depth=1, width=16, activation="tanh", first_gain=6.0)


def explored_at_once(_, seeds, episodes, *, first=0):
    return np.ones((seeds - first, episodes))


def test_a_figure_says_what_to_type_for_it_and_tells_its_claims(tmp_path, capsys, monkeypatch):
    monkeypatch.setattr("maxplore.experiments.exploration.explored_shares", explored_at_once)
    assert main(["reproduce", "chain-trap", "--seeds", "1", "--episodes", "5", "--out", str(tmp_path / "new")]) == 0
    summary = json.loads((tmp_path / "new" / "summary.json").read_text())
    assert {"figure", "command", "version", "config", "seeds", "claims", "curves"} < set(summary)
    assert summary["command"] == "maxplore reproduce chain-trap --seeds 1 --episodes 5"
    assert {"MAX", "MAX, trap", "oracle"} < set(summary["curves"]) == set(summary["episodes_needed"])
    for curve in summary["curves"].values():
        assert len(curve["x"]) == len(curve["median"]) == len(curve["p25"]) == len(curve["p75"]) == 5
    assert len(list((tmp_path / "new").iterdir())) == 4, "nothing half-written"
    told = capsys.readouterr().out
    assert all(f"holds          {claim['claim']}" in told for claim in summary["claims"])


def test_a_claim_that_does_not_hold_is_printed_as_such(tmp_path, capsys, monkeypatch):
    """Half of the Chain is never explored: no claim holds, and those about 60 episodes are not judged after 5."""
    half = "maxplore.experiments.exploration.explored_shares"
    monkeypatch.setattr(half, lambda _, seeds, episodes, *, first=0: np.full((seeds - first, episodes), 0.5))
    assert main(["reproduce", "chain", "--seeds", "1", "--episodes", "5", "--out", str(tmp_path)]) == 0
    told = capsys.readouterr().out
    summary = json.loads((tmp_path / "summary.json").read_text())
    assert len(summary["claims"]) == 4
    for claim in summary["claims"]:
        assert claim["measured"] is None
        assert f"DOES NOT HOLD  {claim['claim']}: None (paper: {claim['paper']}; holds if: at most" in told
    (line,) = [line for line in told.splitlines() if line.startswith("not judged")]
    assert line.endswith("EB-DQN after 60 episodes: median share: the figure goes to 5, and 1 more")


def test_lines_go_on_where_they_were_stopped_and_more_seeds_redo_none(tmp_path, monkeypatch):
    ran: list[tuple[int, int]] = []

    def shares(line, seeds, episodes, *, first=0):
        ran.append((first, seeds))
        return np.arange(first, seeds, dtype=np.float32)[:, None] / 10 * np.ones(episodes, np.float32)

    monkeypatch.setattr(exploration, "explored_shares", shares)
    monkeypatch.setattr(exploration, "code", lambda: "maxplore 1")
    record, line = tmp_path / "shares.jsonl", Line(OracleExplorer(), 10)
    first = kept_shares(record, line, 3, 4)
    more = kept_shares(record, line, 5, 4)
    assert ran == [(0, 3), (3, 5)]
    np.testing.assert_allclose(more, np.arange(5)[:, None] / 10 * np.ones(4))
    np.testing.assert_array_equal(more[:3], first)
    np.testing.assert_array_equal(kept_shares(record, line, 2, 4), first[:2])
    assert len(ran) == 2, "all of it was there"
    kept_shares(record, Line(OracleExplorer(), 11), 1, 4)
    kept_shares(record, line, 1, 6)
    assert len(ran) == 4, "another line, and another length"
    record.write_text(record.read_text()[:-20])
    kept_shares(record, line, 1, 6)
    assert len(ran) == 5, "what was cut short is done again"
    with record.open("a") as file:
        file.write(record.read_text().splitlines()[0] + "\n")  # as a second process would, that ran beside the first
    np.testing.assert_array_equal(kept_shares(record, line, 6, 4)[:5], more)
    assert ran[5:] == [(5, 6)], "a row says which seeds it has"
    del ran[5:]
    monkeypatch.setattr(exploration, "code", lambda: "maxplore 2")
    kept_shares(record, line, 1, 6)
    monkeypatch.setattr(exploration, "code", lambda: f"maxplore 2{CHANGED}")
    kept_shares(record, line, 1, 6)
    kept_shares(record, line, 1, 6)
    assert len(ran) == 8, "other code, and code that nobody knows"


@pytest.mark.parametrize(
    "shares", ["3", "[[0.1, 0.2], [0.3]]", "[[0.1, 0.2, 0.3, 0.4]]", '"all"', "[[0.1, NaN]]", "[[2.0, 3.0]]", "{}"]
)
def test_what_are_no_shares_is_not_there(tmp_path, monkeypatch, shares):
    monkeypatch.setattr(exploration, "explored_shares", explored_at_once)
    monkeypatch.setattr(exploration, "code", lambda: "maxplore 1")
    record, line = tmp_path / "shares.jsonl", Line(OracleExplorer(), 10)
    own = json.dumps({"code": "maxplore 1", "line": repr(line), "episodes": 2, "first": 0})
    record.write_bytes(f'{own[:-1]}, "shares": {shares}}}\n{own}\n[1]\n'.encode() + b"\xff\n")
    np.testing.assert_array_equal(kept_shares(record, line, 1, 2), np.ones((1, 2)))


def test_the_same_numbers_make_the_same_files(tmp_path, monkeypatch):
    monkeypatch.setattr(exploration, "explored_shares", explored_at_once)
    for folder in ("first", "second"):
        assert main(["reproduce", "chain", "--preset", "smoke", "--out", str(tmp_path / folder)]) == 0
    for file in ("chain.png", "chain.svg", "summary.json"):
        assert (tmp_path / "first" / file).read_bytes() == (tmp_path / "second" / file).read_bytes()


def test_seeds_are_the_same_however_many_come_after():
    line = Line(RandomExplorer(), 8)
    every = explored_shares(line, 5, 3)
    np.testing.assert_array_equal(explored_shares(line, 5, 3, first=3), every[3:])
    np.testing.assert_array_equal(explored_shares(line, 2, 3), every[:2])


def test_an_interrupt_is_one_line(tmp_path, capsys, monkeypatch):
    def interrupted(*_, **__):
        raise KeyboardInterrupt

    monkeypatch.setattr("maxplore.experiments.exploration.explored_shares", interrupted)
    assert main(["reproduce", "chain", "--out", str(tmp_path)]) == 130
    assert capsys.readouterr().err.count("\n") == 1
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["reproduce", "chian"], "figure is 'chian', expected one of chain, chain-lengths"),
        (["reproduce", "chain", "--seeds", "0"], "--seeds is 0, expected a whole number of at least 1"),
        (["reproduce", "chain", "--configs", "2"], "chain: --configs is no option of this figure"),
        (["reproduce", "chain-grid", "--configs", "-1"], "--configs is -1, expected at least 1, or 0 for all"),
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


def test_the_grids_are_the_papers_with_its_choice_first():
    assert {method: len(settings_of(method, None)) for method in GRIDS} == {
        "MAX": 864,
        "EB-DQN": 4374,
        "Bootstrapped DQN": 2187,
    }
    for method in GRIDS:
        few = settings_of(method, 3)
        assert few[0] == CHOSEN[method]
        assert few == settings_of(method, None)[:3]
        assert all(value in GRIDS[method][name] for setting in few for name, value in setting.items())
    assert explorer_of("MAX", CHOSEN["MAX"]) == MaxExplorer(PAPER_MAX)
    assert explorer_of("EB-DQN", CHOSEN["EB-DQN"]) == EbDqnExplorer()
    assert explorer_of("Bootstrapped DQN", CHOSEN["Bootstrapped DQN"]) == BootstrappedDqnExplorer()


def test_a_grid_goes_on_where_it_was_stopped(tmp_path, monkeypatch):
    ran = []

    def shares(line, seeds, episodes, *, first=0):
        if not isinstance(line.explorer, OracleExplorer):
            ran.append((first, seeds))
        return np.linspace(0, len(ran) / 20, (seeds - first) * episodes).reshape(seeds - first, episodes)

    monkeypatch.setattr(grid, "explored_shares", shares)
    figure = replace(Grid(), seeds=2, episodes=3, configs=2)
    first = figure.run(tmp_path, lambda _: None)
    assert len(ran) == 6
    record = tmp_path / "grid.jsonl"
    record.write_text(record.read_text()[:-40])  # a crash in the middle of the last line
    again = figure.run(tmp_path, lambda _: None)
    assert len(ran) == 7, "only the setting that was cut short"
    assert figure.run(tmp_path, lambda _: None) == again
    assert len(ran) == 7
    with record.open("a") as file:  # what is no row, or has no shares, is not there
        file.write(
            "{}\n3\n" + json.dumps({"method": "MAX", "setting": CHOSEN["MAX"], "episodes": 3, "shares": [[9]]}) + "\n"
        )
    more = replace(figure, seeds=3).run(tmp_path, lambda _: None)
    assert ran[7:] == [(2, 3)] * 6, "one more seed of each setting"
    fewer = figure.run(tmp_path, lambda _: None)
    assert fewer.extra["ranking"] == again.extra["ranking"], "fewer seeds are the first of them"
    assert replace(figure, seeds=3).run(tmp_path, lambda _: None) == more
    assert len(ran) == 13
    for method in ("MAX", "EB-DQN"):
        assert first.extra["ranking"][method] == again.extra["ranking"][method]
        areas = [row["area"] for row in again.extra["ranking"][method]]
        assert areas == sorted(areas, reverse=True)


def test_behaviour_records_the_run_that_the_chain_figure_runs():
    explorer, length, episodes = MaxExplorer(FiniteMaxConfig(SMALL_MODEL, warm_up=1)), 8, 4
    key = jax.random.key(3)
    watched = jax.jit(lambda key: Behaviour(explorer=explorer, length=length).watch(key, episodes))(key)
    key_chain, key_run = jax.random.split(key)
    chain = Chain.random(length, key=key_chain)
    shares = jax.jit(lambda key: run(explorer, chain, episodes, key=key))(key_run)
    found = np.cumsum(np.asarray(watched.novel).sum(1)) / (2 * length)
    np.testing.assert_allclose(found, shares, rtol=1e-6)
    assert not watched.tried[0].any()
    assert (np.asarray(watched.accuracy) <= 1).all()
