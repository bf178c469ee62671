"""What a run keeps of its models as it goes on: the same however often it dies, and nothing to those that have none."""

import shutil
import sqlite3
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import maxplore
from maxplore import InputError
from maxplore.entry import Entry
from maxplore.explorers.model_based import NO_STEP, ModelAgent
from maxplore.explorers.survey import LEVELS, probes, reliability
from maxplore.history import History
from maxplore.models.gaussian import Gaussian, GaussianConfig, GaussianEnsemble
from maxplore.runs import run as running
from maxplore.runs.directory import Folder
from maxplore.runs.record import Record
from tests.rewriting import rewritten


def kept(path):
    with Record.read(path / "run.sqlite") as record:
        return {step: record.landscapes(step) for step in record.surveyed}


def same(one, two):
    assert one.keys() == two.keys()
    for step in one:
        assert {name: table.tobytes() for name, table in one[step].items()} == {
            name: table.tobytes() for name, table in two[step].items()
        }


def test_every_checkpoint_has_a_landscape(car):
    own = kept(car)
    assert list(own) == [20, 40, 60, 80]
    for tables in own.values():
        assert {name: table.shape for name, table in tables.items()} == {
            "states": (512, 2),
            "utility": (512, 1),
            "reliability": (10, 2),
        }
        assert np.isfinite(tables["utility"]).all()
        assert (tables["utility"] >= 0).all()
        assert (np.abs(tables["states"]) <= [1.2, 0.07001]).all(), "within the bounds of the space"
        assert (np.diff(tables["reliability"][:, 1]) >= 0).all(), "a wider interval holds no less"


def test_half_of_the_probes_were_visited(car):
    explorer = maxplore.load(car)
    visited = {row.tobytes() for row in np.asarray(explorer.history.transitions.state)[: explorer.steps]}
    states = explorer.survey()["states"]
    assert all(row.tobytes() in visited for row in states[:256])
    assert not any(row.tobytes() in visited for row in states[256:])


def test_the_utility_is_that_of_the_explorer(car):
    """For MAX the landscape is its own utility, the mean over the actions that were drawn."""
    explorer = maxplore.load(car)
    agent, own = explorer._agent, explorer.survey()
    assert isinstance(agent, ModelAgent)
    key = jax.random.fold_in(jax.random.fold_in(agent._key, NO_STEP), explorer.steps)
    states, actions = probes(explorer.history, agent._space, key=key)
    utility = np.mean([explorer.utility(states, action) for action in actions], axis=0)
    np.testing.assert_allclose(own["utility"][:, 0], utility, rtol=1e-4, atol=1e-6)


def test_a_survey_changes_nothing_and_can_be_had_again(car):
    explorer = maxplore.load(car)
    before = [np.asarray(x).tobytes() for x in jax.tree.leaves(explorer._agent.frozen()) if hasattr(x, "shape")]
    first, second = explorer.survey(), explorer.survey()
    after = [np.asarray(x).tobytes() for x in jax.tree.leaves(explorer._agent.frozen()) if hasattr(x, "shape")]
    assert before == after
    same({0: first}, {0: second})
    same({0: first}, {0: kept(car)[80]})


def test_one_that_died_before_it_was_kept_is_made_up_for(car, tmp_path):
    """As after a kill: all landscapes but the first two are missing, and so are the checkpoints."""
    path = shutil.copytree(car, tmp_path / "run")
    rewritten(path, surveyed=40)
    for step in (60, 80):
        Folder(path).checkpoint(step).unlink()
    with running.resumed(path):
        pass
    same(kept(path), kept(car))


def test_those_without_models_have_none(tmp_path):
    for number, method in enumerate(("random", "eb-dqn")):
        with running.new(tmp_path / str(number), "maxplore/Chain-v0", env_kwargs={"length": 4}, method=method) as run:
            run.explore(3)
            assert run.explorer.survey() == {}
        assert kept(tmp_path / str(number)) == {}


def test_a_landscape_of_another_form_is_refused(car, tmp_path):
    path = shutil.copytree(car, tmp_path / "run")
    with sqlite3.connect(path / "run.sqlite") as connection:
        connection.execute("UPDATE landscapes SET columns = 3 WHERE name = 'utility'")
    connection.close()
    with pytest.raises(InputError, match="damaged"):
        kept(path)


class Honest(GaussianEnsemble):
    """Expects exactly what happens: a standard Gaussian."""

    def forecast(self, states, actions, *, apart=None):
        shape = (self.size, *states.shape)
        return Gaussian(jnp.zeros(shape), jnp.full(shape, self.spread))

    @property
    def spread(self):
        return 1.0


class Timid(Honest):
    """Expects four times the variance."""

    @property
    def spread(self):
        return 4.0


def test_an_honest_model_lies_on_the_diagonal_and_a_timid_one_above():
    deltas = np.random.default_rng(0).normal(size=(400, 8)).astype(np.float32)
    history = History.empty(Entry((8,)), Entry((1,)))
    history = history.append(np.zeros_like(deltas), np.zeros((400, 1), np.float32), deltas)
    kinds: Any = (Honest, Timid)
    honest, timid = (
        np.asarray(reliability(kind(8, 1, GaussianConfig(members=2), key=jax.random.key(0)), history, 1.0))
        for kind in kinds
    )
    np.testing.assert_allclose(honest, LEVELS, atol=0.03)
    assert (timid > np.asarray(LEVELS) + 0.03).all()
