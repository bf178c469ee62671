"""Plans in problems with known optima, with real and with numbered actions."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from maxplore import CategoricalEnsemble, ExplorationMDP, InputError, MemberConfig
from maxplore.solvers import SolveInfo
from maxplore.solvers.icem import Icem, IcemConfig, Plan, _shifted, colored_noise
from maxplore.utilities import JensenShannon, Task
from tests.counting import compilations
from tests.solvers.landscape import (
    COST,
    DISCOUNT,
    DRIFT,
    EFFORT,
    PUSH,
    START,
    linear_quadratic,
    optimal_cost,
    two_rooms,
)
from tests.systems import known_ensemble

SOLVER = Icem(IcemConfig(horizon=20, discount=DISCOUNT))


@pytest.mark.parametrize(("followed", "worse"), [(1, 1.05), (4, 1.1)])
def test_it_comes_near_the_optimum_of_a_linear_quadratic_task(followed, worse):
    """Planned anew after a few real steps, from the shifted plans of the time before."""
    mdp, (best, _) = linear_quadratic(), optimal_cost(START)
    solver = Icem(IcemConfig(horizon=20, discount=DISCOUNT, followed=followed))
    assert solver.good_for == followed
    state, memory, cost, policy = START, None, 0.0, None
    for t in range(40):
        if t % followed == 0:
            policy, memory, _ = solver.solve(mdp, state, None, memory, key=jax.random.key(t))
        assert policy is not None
        action = np.asarray(policy.later(t % followed)(jnp.asarray(state)))
        state = state + DRIFT @ state + PUSH @ action
        cost += DISCOUNT**t * (np.sum(COST * state**2) + EFFORT * np.sum(action**2))
    assert cost < worse * best


def test_a_plan_goes_on_where_it_was_left():
    counted = Plan(jnp.arange(20.0)[:, None])
    assert [float(counted.later(k)(jnp.zeros(2))[0]) for k in (0, 1, 7)] == [0, 1, 7]
    rest = _shifted(jnp.arange(5.0)[:, None], 2)
    assert rest[:, 0].tolist() == [2, 3, 4, 4, 4]


@pytest.mark.parametrize("numbered", [False, True])
def test_it_goes_to_the_farther_room_if_that_pays_more(numbered):
    for near, far, where in ((0.3, 1.0, (1.2, 1.8)), (1.0, 0.1, (-0.7, -0.3))):
        mdp, place, memory, info = two_rooms(near, far, numbered=numbered), 0.0, None, SolveInfo.blank()
        for t in range(15):
            policy, memory, info = SOLVER.solve(mdp, [place, 0.0], None, memory, key=jax.random.key(t))
            action = policy(jnp.zeros(2))
            place += 0.2 * (float(action) - 1 if numbered else float(action[0]))
        assert where[0] < place < where[1]
        assert int(info.steps) == 4 * (64 + 4 + 1) * 20
        np.testing.assert_allclose(info.after, max(near, far), rtol=0.4)


@pytest.mark.parametrize("held", [0, 4])
def test_what_takes_a_long_push_is_found_by_holding_an_action(held):
    """Only 25 of 30 steps with full force reach what pays; on the way there is nothing to go by."""
    ensemble = known_ensemble([[0.0]], variance=1e-4, key=jax.random.key(0))
    mdp = ExplorationMDP(ensemble, Task(lambda s, a, s2: 1.0 * (jnp.abs(s2[0]) > 24.5)))
    solver = Icem(IcemConfig(horizon=30, held=held, spread=0.3))
    solution = solver.solve(mdp, [0.0], None, key=jax.random.key(0))
    assert (float(solution.info.after) > 0) == (held > 0)
    if held:
        np.testing.assert_array_equal(np.abs(actions_of(solution)), 1.0)


def test_any_numbered_action_can_be_held():
    search = Icem().init(two_rooms(1.0, 1.0, numbered=True), key=jax.random.key(0))
    held = Icem(IcemConfig(plans=600, held=600)).held(search, key=jax.random.key(0))
    assert (held == held[:, :1]).all()
    counts = np.bincount(np.asarray(jnp.argmax(held[:, 0], axis=-1)), minlength=3)
    assert (counts > 150).all(), counts


def actions_of(solution):
    assert isinstance(solution.policy, Plan)
    return np.asarray(solution.policy.actions)


def test_elites_kept_never_make_the_best_plan_worse():
    """The model is sure of itself, so a plan that was found is worth the same the next time."""
    mdp = linear_quadratic()
    solution = SOLVER.solve(mdp, START, None, key=jax.random.key(0))
    actions, memory = actions_of(solution), solution.memory
    assert solution.info.after >= solution.info.before
    state = START + DRIFT @ START + PUSH @ actions[0]
    again = SOLVER.solve(mdp, state, None, memory, key=jax.random.key(2)).info
    np.testing.assert_array_equal(memory.kept[0, :-1], actions[1:])
    worth = 0.0
    for t, action in enumerate(np.asarray(memory.kept[0])):
        state = state + DRIFT @ state + PUSH @ action
        worth -= DISCOUNT**t * (np.sum(COST * state**2) + EFFORT * np.sum(action**2))
    assert again.before >= worth / 20 - 1e-5


def test_nothing_is_compiled_twice_and_a_key_decides_everything():
    models, keys = (linear_quadratic(), two_rooms()), jax.random.split(jax.random.key(0))
    first = SOLVER.solve(models[0], START, None, key=keys[0])
    with compilations() as found:
        SOLVER.solve(models[1], START, None, first.memory, key=keys[1])
        same = SOLVER.solve(models[0], START, None, key=keys[0])
        other = SOLVER.solve(models[0], START, None, key=keys[1])
    assert not found
    np.testing.assert_array_equal(actions_of(first), actions_of(same))
    assert not np.allclose(actions_of(first), actions_of(other))


def test_utilities_that_are_not_finite_are_counted_and_do_no_harm():
    _, _, info = SOLVER.solve(two_rooms(end=1.0), np.zeros(2), None, key=jax.random.key(0))
    assert int(info.nonfinite) > 0
    assert 0.3 < float(info.after) < 1.0


def test_numbered_states_too():
    ensemble = CategoricalEnsemble(4, 3, MemberConfig(members=2, depth=0), key=jax.random.key(0))
    solver = Icem(IcemConfig(horizon=5, rounds=2, plans=8, elites=4, kept=2, particles=3))
    solution = solver.solve(ExplorationMDP(ensemble, JensenShannon()), 2, None, key=jax.random.key(1))
    assert actions_of(solution).shape == (5,)
    assert 0 <= int(solution.policy(jnp.array(2))) < 3
    assert int(solution.info.steps) == 2 * (8 + 2 + 1) * 3 * 5


@pytest.mark.parametrize(("beta", "horizon"), [(0.0, 256), (1.0, 257), (2.0, 256)])
def test_the_power_of_the_noise_falls_as_it_should(beta, horizon):
    draw = jax.jit(lambda key: colored_noise(2000, horizon, 1, beta=beta, key=key))
    noise = np.asarray(draw(jax.random.key(0)))[:, :, 0]
    np.testing.assert_allclose(noise.var(), 1.0, rtol=0.1)
    np.testing.assert_allclose(noise.var(axis=0).min() / noise.var(axis=0).max(), 1.0, atol=0.25)  # stationary
    power = np.mean(np.abs(np.fft.rfft(noise, axis=1)) ** 2, axis=0)[1:-1]
    slope = np.polyfit(np.log(np.fft.rfftfreq(horizon)[1:-1]), np.log(power), 1)[0]
    np.testing.assert_allclose(slope, -beta, atol=0.03)


def test_what_makes_no_search_is_refused():
    with pytest.raises(InputError, match="kept, elites, plans are 4, 10, 5, expected none larger than the next"):
        IcemConfig(plans=5)
    with pytest.raises(InputError, match=r"beta is -1\.0, expected 0 or more"):
        IcemConfig(beta=-1.0)
    assert colored_noise(3, 1, 2, beta=1.0, key=jax.random.key(0)).shape == (3, 1, 2)
