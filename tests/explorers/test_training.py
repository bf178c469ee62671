"""How an ensemble learns from counts."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from maxplore.explorers import Finite, FiniteMaxConfig, MaxExplorer, Minibatches, UntilFitted
from maxplore.explorers import training as module
from maxplore.history import Transition
from maxplore.models import MemberConfig

WORLD = Finite(6, 2, 10)
MODEL = MemberConfig(members=2, depth=1, width=16, activation="tanh", first_gain=6.0)
SEEN = [(0, 0, 1), (0, 0, 1), (0, 0, 2), (0, 0, 2), (3, 1, 4), (5, 0, 5)]


def mind(seen=SEEN):
    mind = MaxExplorer(FiniteMaxConfig(MODEL)).init(WORLD, key=jax.random.key(0))
    memory = mind.memory
    for state, action, following in seen:
        never = jnp.bool_(False)
        memory = memory.add(Transition(jnp.int32(state), jnp.int32(action), jnp.int32(following), never, never))
    return eqx.tree_at(lambda m: m.memory, mind, memory)


def learned(training, mind, first=False):
    learn = jax.jit(
        lambda mind: training.learn(
            WORLD, mind.memory, mind.ensemble, mind.moments, jnp.bool_(first), key=jax.random.key(1)
        )
    )
    members, moments = learn(mind)
    return eqx.tree_at(lambda m: (m.ensemble.members, m.moments), mind, (members, moments))


def test_training_until_fitted_ends_when_the_worst_pair_is_fitted_and_not_before():
    before = mind()
    tolerance = 0.02
    after = learned(UntilFitted(tolerance=tolerance, iterations=1000, doubt=0.0), before)
    log_said = jax.nn.log_softmax(after.ensemble.table())
    for (state, action), observed in {(0, 0): {1: 0.5, 2: 0.5}, (3, 1): {4: 1.0}, (5, 0): {5: 1.0}}.items():
        for member in range(2):
            kl = sum(p * (np.log(p) - float(log_said[member, state, action, k])) for k, p in observed.items())
            assert kl < tolerance * 1.5
    assert 1 < int(after.moments.steps) < 1000
    assert int(learned(UntilFitted(tolerance=tolerance, iterations=5, doubt=0.0), before).moments.steps) == 5


def test_leaving_out_pairs_never_visited_changes_nothing(monkeypatch):
    before = mind()
    whole = learned(UntilFitted(iterations=30), before)
    monkeypatch.setattr(module, "FEW", 4)  # 4 of the 12 pairs are enough for the 3 visited
    few = learned(UntilFitted(iterations=30), before)
    np.testing.assert_allclose(few.ensemble.table(), whole.ensemble.table(), rtol=1e-3, atol=1e-4)


def test_minibatches_spread_an_episodes_iterations_over_its_steps():
    training, now, done = Minibatches(per_episode=7, first=3), mind([]), []
    for step in range(WORLD.horizon):
        row = Transition(jnp.int32(0), jnp.int32(0), jnp.int32(1), jnp.bool_(False), jnp.bool_(step == 9))
        now = eqx.tree_at(lambda m: m.memory, now, now.memory.add(row))
        now = learned(training, now)
        done.append(int(now.moments.steps))
    assert done[-1] == 7
    assert set(np.diff([0, *done])) <= {0, 1}
    assert int(learned(training, mind(), first=True).moments.steps) == 3


def test_minibatches_learn_the_frequencies_that_were_observed():
    after = learned(Minibatches(first=400, learning_rate=1e-2), mind(), first=True)
    said = np.asarray(jax.nn.softmax(after.ensemble.table()))
    np.testing.assert_allclose(said[:, 0, 0, 1:3], 0.5, atol=0.08)
    assert (said[:, 3, 1, 4] > 0.95).all()
    assert (said[:, 5, 0, 5] > 0.95).all()


@pytest.mark.parametrize("known", [True, False])
def test_where_the_end_is_not_known_plans_always_look_as_far(known):
    world = Finite(2, 2, 10, known_end=known)
    assert [int(world.remaining(jnp.int32(step))) for step in (0, 9, 25)] == ([10, 1, 1] if known else [10] * 3)


def test_in_a_world_without_chance_there_is_no_doubt():
    memory, pairs = mind([(0, 0, 1), (0, 0, 1), (3, 1, 4)]).memory, (jnp.array([0, 3]), jnp.array([0, 1]))
    for own in module.believed(memory, *pairs, 3, 5.0):
        np.testing.assert_array_equal(own, memory.frequencies[pairs])


def test_where_chance_is_at_work_members_doubt_what_they_saw_seldom():
    """Of two pairs tried again one surprised, which is 4/9 of the way from a tenth to all: of 9/4 made-up transitions
    one counts. (0, 0) was tried four times and is believed to 4/5, (3, 1) twice and to 2/3, (5, 0) once and to a half;
    each member makes up its own."""
    memory, pairs = mind([*SEEN, (3, 1, 4)]).memory, (jnp.array([0, 3, 5]), jnp.array([0, 1, 0]))
    doubting, seen = np.asarray(module.believed(memory, *pairs, 16, 2.25)), np.asarray(memory.frequencies[pairs])
    for row, known in enumerate((4 / 5, 2 / 3, 1 / 2)):
        own = doubting[:, row] - known * seen[row]
        np.testing.assert_allclose(own.sum(axis=-1), 1 - known, atol=1e-6)
        np.testing.assert_allclose(own.max(axis=-1), 1 - known, atol=1e-6)
        assert len(set(own.argmax(axis=-1).tolist())) > 2
