"""The examples do what they say, at a size of seconds."""

from pathlib import Path
from typing import Any

import gymnasium as gym
import jax
import jax.numpy as jnp
import numpy as np
import pytest

import maxplore
from examples import own_reward, own_solver, own_utility, robot
from maxplore import ExplorationMDP, Explorer
from maxplore.utilities import JensenRenyi
from tests.solvers.landscape import two_rooms
from tests.systems import known_ensemble

EXAMPLES = {f"examples/{path.name}" for path in (Path(__file__).parents[1] / "examples").glob("*.py")}


def test_every_example_is_tried_here():
    tried = {
        f"examples/{module.__name__.rpartition('.')[2]}.py" for module in (own_reward, own_solver, own_utility, robot)
    }
    assert tried | {"examples/mountain_car.py"} == EXAMPLES  # which `make demo` runs


def test_tasks_of_ones_own_are_solved_on_the_shortest_ways():
    env, explorer = own_reward.explored(0, preset="smoke")
    cliff: Any = env.unwrapped
    for state, actions in cliff.P.items():
        for action, ((_, following, _, over),) in actions.items():
            explorer.tell(state, action, following, terminated=over, truncated=not over)
    for place, least in ((own_reward.GOAL, 13), (own_reward.CORNER, 14)):
        policy = explorer.exploit(*own_reward.hurry_to(place), members=2, tolerance=1e-2)
        assert policy.evaluate(env, episodes=1) == [100 - (least - 1)]


def test_a_utility_of_ones_own_pays_for_novelty_within_its_limit():
    ensemble = known_ensemble([[0.0, 0.0], [1.0, 0.0]], 0.1, jax.random.key(0))
    free, leashed = (ExplorationMDP(ensemble, u) for u in (JensenRenyi(), own_utility.Leashed(limit=2.0, price=3.0)))
    states, actions = jnp.zeros((3, 2)), jnp.zeros((3, 2))
    following = jnp.array([[1.5, 9.0], [2.5, 0.0], [-4.0, 0.0]])
    fined = free.worth(states, actions, following) - leashed.worth(states, actions, following)
    assert fined == pytest.approx([0.0, 1.5, 6.0], abs=1e-5)


@pytest.mark.parametrize(("near", "far", "where"), [(0.3, 1.0, (1.1, 1.9)), (1.0, 0.1, (-0.8, -0.2))])
def test_a_solver_of_ones_own_goes_where_it_pays_more(near, far, where):
    solver, place = own_solver.Shooting(), 0.0
    for step in range(15):
        policy, _, info = solver.solve(two_rooms(near, far), [place, 0.0], None, key=jax.random.key(step))
        place += 0.2 * float(policy(jnp.zeros(2))[0])
        assert info.after >= info.before
    assert where[0] < place < where[1]


def test_an_explorer_takes_a_utility_and_a_solver_of_ones_own(tmp_path):
    parts: dict[str, Any] = {"utility": own_utility.Leashed(dimension=2), "solver": own_solver.Shooting(plans=8)}
    assert own_utility.explored(steps=12, preset="smoke", **parts).shape == (12,)
    env = gym.make("Pendulum-v1")
    explorer = Explorer(env.observation_space, env.action_space, preset="smoke", **parts)
    with pytest.raises(maxplore.InputError, match="cannot be saved"):
        explorer.save(tmp_path)


def test_a_robot_is_explored_across_a_night(tmp_path):
    servo = robot.Servo(seed=0)
    quick: dict[str, Any] = {"preset": "smoke", "solver": "icem", "epochs": 50, "learning_rate": 1e-2}
    explorer = Explorer(robot.OBSERVATIONS, robot.COMMANDS, horizon=20, **quick)
    log = list(robot.by_hand(servo, 60))
    for line in log:
        explorer.tell(line.seen, line.torque, line.after, terminated=line.stopped)
    robot.session(servo, explorer, 20)
    explorer.save(tmp_path)
    woken = maxplore.load(tmp_path)
    assert woken.ask(log[-1].after) == explorer.ask(log[-1].after)
    robot.session(servo, woken, 20)
    seen = woken.history.transitions
    assert woken.steps == 100
    assert int(seen.terminated.sum()) == servo.stops
    assert servo.clock == pytest.approx(robot.TICK * 100 + 3.0 * (3 + servo.stops))
    assert np.abs(seen.action).max() <= 1.0
    mean, _ = woken.model.predict([[0.0, 0.0]] * 2, [[-5.0], [5.0]])
    assert bool((mean[:, 0, 1] < mean[:, 1, 1]).all()), "every member knows which way a torque turns"


def test_the_safety_stop_cuts_in_where_it_should():
    servo = robot.Servo()
    ticks = 0
    while not servo.drive(5.0):
        ticks += 1
    assert servo.stops == 1
    assert abs(servo.angle) > servo.LIMIT
    assert ticks > 5
    assert float(robot.half_way(jnp.zeros(2), jnp.zeros(1), jnp.array([1.0, 0.0]))) == 1.0
