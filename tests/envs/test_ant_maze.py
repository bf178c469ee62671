"""The ant's maze: its seven cells, its walls, and what the ant sees."""

from typing import Any

import gymnasium as gym
import numpy as np
import pytest

import maxplore
from maxplore.envs.maze import CELLS, cell_at

assert maxplore.__version__

STILL = np.zeros(8, np.float32)


@pytest.fixture
def ant():
    env: Any = gym.make("maxplore/AntMaze-v0", noise=0.0).unwrapped
    env.reset(seed=0)
    return env


def put(ant, position, velocity=(0.0, 0.0)):
    ant.data.qpos[:2] = position
    ant.data.qvel[:] = 0
    ant.data.qvel[:2] = velocity


def test_the_31_observations_are_what_the_docstring_says(ant):
    for action in np.random.default_rng(0).uniform(-1, 1, (20, 8)).astype(np.float32):
        before = ant.data.qpos[:2].copy()
        seen, *_, info = ant.step(action)
        assert seen.shape == (31,)
        np.testing.assert_allclose(seen[:2], (ant.data.qpos[:2] - before) / 0.05, atol=1e-5)
        np.testing.assert_allclose(seen[2:17], ant.data.qpos, atol=1e-6)
        np.testing.assert_allclose(seen[17:], ant.data.qvel, rtol=1e-6)
        np.testing.assert_array_equal(info["position"], ant.data.qpos[:2])


def test_the_quaternion_is_one_from_the_start(ant):
    seen, _ = ant.reset(seed=1)
    np.testing.assert_array_equal(seen[:2], 0)
    assert np.linalg.norm(seen[5:9]) == pytest.approx(1, abs=1e-6)


def test_the_simulation_is_the_papers(ant):
    assert ant.model.opt.integrator == 1  # RK4
    assert ant.model.opt.timestep == 0.01
    np.testing.assert_array_equal(ant.model.actuator_gear[:, 0], 150)
    walls = ant.model.geom_size[ant.model.geom_type == 6]  # boxes, by half of their sides
    np.testing.assert_array_equal(walls, np.broadcast_to([1, 1, 3], (25 - 7, 3)))


def test_the_seven_cells_are_told_by_their_centres_and_edges():
    centres = [(0, 0), (0, 2), (0, 4), (2, 4), (4, 4), (4, 2), (4, 0)]
    assert [cell_at(*map(float, centre)) for centre in centres] == list(range(7))
    assert [cell_at(x, 0.0) for x in (-0.99, 0.99, 1.01, 2.99, 3.01)] == [0, 0, None, None, 6]
    assert [cell_at(0.0, y) for y in (0.99, 1.01, 2.99, 3.01, 5.01)] == [0, 1, 1, 2, None]
    assert cell_at(2.0, 2.0) is None


def test_visited_cells_add_up_over_episodes(ant):
    for number, (x, y) in enumerate(CELLS):
        ant.reset()
        put(ant, (2 * x, 2 * y))
        info = ant.step(STILL)[4]
        assert info["cell"] == number
        assert info["visited"].tolist() == [True] * (number + 1) + [False] * (6 - number)
    assert ant.reset(seed=0)[1]["visited"].all()
    fresh = gym.make("maxplore/AntMaze-v0").reset(seed=0)[1]
    assert fresh["cell"] == 0
    assert fresh["visited"].tolist() == [True] + [False] * 6


def test_visited_is_the_callers_own(ant):
    ant.step(STILL)[4]["visited"][:] = True
    assert ant.step(STILL)[4]["visited"].sum() == 1


@pytest.mark.parametrize("cell", CELLS)
def test_walls_stop_the_ant_and_open_sides_do_not(ant, cell):
    for way in ((1, 0), (-1, 0), (0, 1), (0, -1)):
        ant.reset(seed=0)
        put(ant, 2.0 * np.array(cell), 8.0 * np.array(way))
        went = 0.0
        for _ in range(10):
            ant.step(STILL)
            went = max(went, float((ant.data.qpos[:2] - 2.0 * np.array(cell)) @ way))
        beyond = (cell[0] + way[0], cell[1] + way[1])
        # the torso is a ball of 0.25 m, the wall 1 m away
        assert went > 1.0 if beyond in CELLS else went < 0.8


def test_seen_from_above_it_is_a_u_with_the_ant_at_its_end(opengl):
    env: Any = gym.make("maxplore/AntMaze-v0", render_mode="rgb_array").unwrapped
    env.reset(seed=0)
    put(env, (4.0, 4.0))
    env.step(STILL)
    picture = env.render().astype(int)
    env.close()
    # 96 pixels a cell, y upwards; most of a cell is floor or wall
    cells = picture[::-1].reshape(5, 96, 5, 96, 3).swapaxes(1, 2)
    bright = np.median(cells[..., 0], axis=(2, 3)) > 200
    assert {(int(x) - 1, int(y) - 1) for y, x in np.argwhere(bright)} == set(CELLS)
    red, _, blue = cells[3, 3, 48, 48]
    assert red > blue + 30  # the ant is the colour of sand
