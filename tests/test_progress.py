"""What is said while an environment is explored, and a task solved."""

import threading
from typing import Any

import equinox as eqx
import gymnasium as gym
import jax
import numpy as np
import pytest

from maxplore import Explorer, FitConfig, GaussianConfig, GaussianEnsemble, fit, progress
from maxplore.exploit.real import SOLVERS
from maxplore.progress import lines, shown
from maxplore.solvers import Gradient, GradientConfig, Icem, IcemConfig, Sac, SacConfig
from tests.solvers.landscape import data, linear_quadratic
from tests.systems import history_of, linear_gaussian


def test_every_round_is_told_once_and_as_it_comes():
    env = gym.make("maxplore/MountainCar-v0")
    explorer = Explorer(env.observation_space, env.action_space, preset="smoke", solver="icem")
    heard: list[tuple[int, float]] = []
    explorer.explore(env, 61, watch=lambda row: heard.append((explorer.steps, row["step"])))
    assert heard == [(11, 10.0), (36, 35.0), (61, 60.0)]
    explorer.explore(env, 3, watch=lambda row: heard.append((explorer.steps, row["step"])))
    assert len(heard) == 3, "what was told is not told again"


def test_a_bar_is_shown_where_it_is_wanted(capsys):
    row = {"step": 10.0, "utility": 0.5, "saturation": float("nan"), "error": 0.1, "coverage": 7.0}
    for wanted, words in ((True, "utility 0.50, model error 0.1, coverage 7.00"), (None, ""), (False, "")):
        with shown(20, wanted=wanted, watch=None) as show:
            for done in range(1, 21):
                show(done, row if done > 10 else None)
        said = capsys.readouterr()
        assert said.out == ""
        assert words in " ".join(said.err.split())
        assert wanted or not said.err.strip()


QUICK: dict[str, Any] = {"members": 2, "model_width": 8, "epochs": 20, "episodes": 2, "horizon": 7}
SMALL = {
    "sac": Sac(
        SacConfig(history_updates=2, episodes=6, steps=4, actors=4, updates=2, batch_size=8, width=8, random_episodes=2)
    ),
    "gradient": Gradient(GradientConfig(iterations=6, actors=4, horizon=3, lifetime=6, width=8)),
    "icem": Icem(IcemConfig(horizon=3, rounds=1, plans=8, elites=4, kept=2)),
}


@pytest.mark.parametrize("name", SOLVERS)
def test_a_task_tells_what_is_done_and_what_is_expected_so_far(name):
    env = gym.make("Pendulum-v1")
    explorer = Explorer(env.observation_space, env.action_space, method="random")
    explorer.explore(env, 40)
    told: list[tuple[str, int, int, float | None]] = []
    policy = explorer.exploit(lambda s, a, s2: s2[0], solver=SMALL[name], watch=lambda *row: told.append(row), **QUICK)
    solved = [] if name == "icem" else ["solve"]  # its plans are made in the forecast
    assert list(dict.fromkeys(row[0] for row in told)) == ["fit", *solved, "forecast"]
    for doing, steps in (("fit", 20), *((each, 6) for each in solved), ("forecast", 7)):
        own = [(done, of) for what, done, of, _ in told if what == doing]
        assert own == sorted(own)
        assert own[-1] == (steps, steps)
    assert told[-1][-1] == pytest.approx(policy.report.imagined, rel=1e-4)


@pytest.mark.parametrize("name", ["sac", "gradient"])
def test_a_solve_that_is_told_of_is_the_same_solve(name):
    mdp, told = linear_quadratic(), list[int]()
    history, start = data(mdp), np.zeros(mdp.ensemble.state_entry.shape)
    whole, pieces = (
        SMALL[name].solve(mdp, start, history, key=jax.random.key(0), tell=tell)
        for tell in (None, lambda done, utility: told.append(done))
    )
    assert told[-1] == 6
    jax.tree.map(lambda one, two: np.testing.assert_allclose(one, two, rtol=1e-4, atol=1e-6), *arrays(whole, pieces))


def test_a_fit_that_is_told_of_is_the_same_fit():
    history, told = history_of(*linear_gaussian(100, 0.1)[:3]), list[int]()
    ensemble = GaussianEnsemble(2, 1, GaussianConfig(members=2, depth=1, width=8), key=jax.random.key(0))
    config = FitConfig(epochs=5, batch_size=16, held_out=0.1, patience=4)
    whole, pieces = (
        fit(ensemble, history, config, key=jax.random.key(1), tell=tell)
        for tell in (None, lambda doing, done, of, expects: told.append(done))
    )
    assert told[-1] == int(whole.report.steps)
    jax.tree.map(lambda one, two: np.testing.assert_allclose(one, two, rtol=1e-4, atol=1e-6), *arrays(whole, pieces))


def arrays(*trees):
    return [eqx.filter(tree, eqx.is_inexact_array) for tree in trees]


def test_lines_come_while_work_is_under_way(monkeypatch):
    """Also from within a call that does not return for long."""
    monkeypatch.setattr(progress, "FIRST", 0.0)
    said, written = list[str](), threading.Event()

    def write(line):
        said.append(line)
        written.set()

    with lines(write) as tell:
        tell("fit", 3, 10, None)
        monkeypatch.setattr(progress, "EVERY", 0.0)
        assert written.wait(60)
    assert said[-1].startswith("fit 3 of 10 (")
