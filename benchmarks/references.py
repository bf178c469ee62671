"""Returns to measure policies against: planning on the true dynamics from given first states, and random actions.

Pendulum and both Mountain Cars are solved by dynamic programming on a fine grid; Reacher, Hopper and Acrobot by the
cross-entropy method in the simulator itself; finite tables by value iteration. CartPole's best return is its length.
"""

from collections.abc import Callable, Sequence
from typing import Any

import gymnasium as gym
import mujoco
import mujoco.rollout
import numpy as np
from scipy.ndimage import map_coordinates

FIRST_EPISODE = 10_000
"""Seed of the first of the episodes that policies are evaluated in."""
Rollout = Callable[[Any, np.ndarray], np.ndarray]
"""Returns `[plans]` of action sequences `[plans, steps, ...]` from one state of a simulator."""


def seeds(episodes: int) -> range:
    """Reset seeds of the episodes that every policy is evaluated in."""
    return range(FIRST_EPISODE, FIRST_EPISODE + episodes)


def random_returns(env: gym.Env[Any, Any], reward: Callable[..., float], steps: int, episodes: int) -> list[float]:
    """Return the returns of uniformly random actions."""
    returns = []
    for seed in seeds(episodes):
        observation, _ = env.reset(seed=seed)
        env.action_space.seed(seed)
        total = 0.0
        for _ in range(steps):
            action = env.action_space.sample()
            following, _, terminated, truncated, _ = env.step(action)
            total += float(reward(observation, action, following))
            observation = following
            if terminated or truncated:
                break
        returns.append(total)
    return returns


class Grid:
    """Finite-horizon dynamic programming over two real dimensions: values interpolated, actions from a list."""

    def __init__(
        self,
        step: Callable[[np.ndarray, Any], tuple[np.ndarray, np.ndarray, np.ndarray]],
        low: Sequence[float],
        high: Sequence[float],
        actions: Sequence[Any],
        *,
        size: int = 401,
        wraps: bool = False,
    ) -> None:
        """`step(states [2, ...], action)` gives next states, rewards, and where the episode is over; `wraps` makes the
        first dimension an angle."""
        self.step, self.actions, self.size, self.wraps = step, list(actions), size, wraps
        self.low, self.high = np.array(low), np.array(high)
        axes = [np.linspace(a, b, size) for a, b in zip(low, high, strict=True)]
        self.points = np.stack(np.meshgrid(*axes, indexing="ij"))

    def values(self, horizon: int) -> list[np.ndarray]:
        """Values with 0, 1, ... `horizon` steps to go."""
        outcomes = [self.step(self.points, action) for action in self.actions]
        found = [np.zeros(self.points.shape[1:])]
        for _ in range(horizon):
            found.append(np.max([self.backed_up(found[-1], *outcome) for outcome in outcomes], axis=0))
        return found

    def backed_up(self, value: np.ndarray, states: np.ndarray, reward: np.ndarray, over: np.ndarray) -> np.ndarray:
        """Value of a step that led to these states."""
        scale = (self.size - 1) / (self.high - self.low)
        place = (states - self.low.reshape(-1, *[1] * (states.ndim - 1))) * scale.reshape(-1, *[1] * (states.ndim - 1))
        if self.wraps:
            place[0] %= self.size - 1
        return reward + np.where(over, 0.0, map_coordinates(value, place, order=1, mode="nearest"))

    def best(self, state: np.ndarray, value: np.ndarray) -> Any:
        """The action with the highest value, where `value` is that of the step after it."""
        rated = [self.backed_up(value, *self.step(state[:, None], action))[0] for action in self.actions]
        return self.actions[int(np.argmax(rated))]

    def returns(self, env: gym.Env[Any, Any], horizon: int, episodes: int) -> list[float]:
        """Returns of the greedy policy, from the first states of an environment whose state is `unwrapped.state`."""
        values, returns = self.values(horizon), []
        for seed in seeds(episodes):
            env.reset(seed=seed)
            own: Any = env.unwrapped
            state = np.array(own.state if hasattr(own, "state") else own._state, np.float64)
            total = 0.0
            for left in range(horizon, 0, -1):
                after, reward, over = self.step(state[:, None], self.best(state, values[left - 1]))
                state, total = after[:, 0], total + float(reward[0])
                if over[0]:
                    break
            returns.append(total)
        return returns


def pendulum(episodes: int) -> list[float]:
    """Pendulum-v1, 200 steps."""

    def step(state: np.ndarray, torque: float) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        angle, speed = state
        upright = (angle + np.pi) % (2 * np.pi) - np.pi
        reward = -(upright**2 + 0.1 * speed**2 + 0.001 * torque**2)
        speed = np.clip(speed + (15.0 * np.sin(angle) + 3.0 * torque) * 0.05, -8, 8)
        return np.stack([angle + 0.05 * speed, speed]), reward, np.zeros(reward.shape, bool)

    grid = Grid(step, (-np.pi, -8), (np.pi, 8), np.linspace(-2, 2, 21).tolist(), wraps=True)
    return grid.returns(gym.make("Pendulum-v1"), 200, episodes)


def mountain_car_continuous(episodes: int) -> list[float]:
    """`maxplore/MountainCar-v0`, 500 steps, 100 for each at the flag."""

    def step(state: np.ndarray, push: float) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        position, velocity = state
        velocity = np.clip(velocity + 0.0015 * push - 0.0025 * np.cos(3 * position), -0.07, 0.07)
        position = np.clip(position + velocity, -1.2, 0.6)
        velocity = np.where(position <= -1.2, np.maximum(velocity, 0), velocity)
        return np.stack([position, velocity]), np.where(position >= 0.45, 100.0, 0.0), np.zeros(position.shape, bool)

    grid = Grid(step, (-1.2, -0.07), (0.6, 0.07), (-1.0, 0.0, 1.0))
    return grid.returns(gym.make("maxplore/MountainCar-v0"), 500, episodes)


def mountain_car(episodes: int) -> list[float]:
    """MountainCar-v0, 200 steps, -1 for each until the flag."""

    def step(state: np.ndarray, action: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        position, velocity = state
        velocity = np.clip(velocity + 0.001 * (action - 1) - 0.0025 * np.cos(3 * position), -0.07, 0.07)
        position = np.clip(position + velocity, -1.2, 0.6)
        velocity = np.where((position <= -1.2) & (velocity < 0), 0.0, velocity)
        return np.stack([position, velocity]), -np.ones(position.shape), position >= 0.5

    return Grid(step, (-1.2, -0.07), (0.6, 0.07), (0, 1, 2)).returns(gym.make("MountainCar-v0"), 200, episodes)


def searched(
    rate: Rollout, draw: Callable[[np.ndarray, np.ndarray, int], np.ndarray], shape: tuple[int, int], *, rounds: int
) -> Callable[..., tuple[np.ndarray, float]]:
    """The cross-entropy method: `draw(mean, spread, plans)` gives plans of this shape, `rate` their returns."""

    def search(state: Any, mean: np.ndarray, *, plans: int = 128, elites: int = 12) -> tuple[np.ndarray, float]:
        spread, best, most = np.ones(shape), mean, -np.inf
        for _ in range(rounds):
            drawn = np.concatenate([draw(mean, spread, plans), best[None], mean[None]])
            rated = rate(state, drawn)
            order = np.argsort(rated)[::-1][:elites]
            if rated[order[0]] > most:
                best, most = drawn[order[0]], float(rated[order[0]])
            mean, spread = drawn[order].mean(0), drawn[order].std(0) + 0.02
        return best, most

    return search


class Simulated:
    """One of Gymnasium's MuJoCo environments, planned in by rolling its own model out from where it stands."""

    def __init__(self, name: str, reward: Callable[[np.ndarray, np.ndarray], np.ndarray], ahead: int) -> None:
        """`reward(full states [plans, steps + 1, ...], actions [plans, steps, ...])` is `[plans, steps]`."""
        self.env, self.reward, self.ahead = gym.make(name), reward, ahead
        own: Any = self.env.unwrapped
        self.model, self.data, self.skip = own.model, own.data, own.frame_skip
        self.scratch = mujoco.MjData(self.model)
        self.rng = np.random.default_rng(0)

    def rate(self, state: np.ndarray, plans: np.ndarray) -> np.ndarray:
        limit = self.model.actuator_ctrlrange[:, 1]
        actions = np.clip(plans, -1, 1) * limit
        begin = np.repeat(state[None], len(plans), 0)
        found, _ = mujoco.rollout.rollout(self.model, self.scratch, begin, np.repeat(actions, self.skip, 1))
        states = np.asarray(found)
        whole = np.concatenate([begin[:, None], states[:, self.skip - 1 :: self.skip]], 1)
        return self.reward(whole, actions).sum(1)

    def draw(self, mean: np.ndarray, spread: np.ndarray, plans: int) -> np.ndarray:
        """Noise that keeps its direction for a while."""
        white = self.rng.standard_normal((plans, *mean.shape))
        for step in range(1, white.shape[1]):
            white[:, step] = 0.7 * white[:, step - 1] + np.sqrt(1 - 0.7**2) * white[:, step]
        return np.clip(mean + spread * white, -1, 1)

    def returns(self, steps: int, episodes: int, *, rounds: int = 4) -> list[float]:
        """Returns of planning anew at every step, by the task's own reward."""
        shape, returns = (self.ahead, self.model.nu), []
        search = searched(self.rate, self.draw, shape, rounds=rounds)
        signature = mujoco.mjtState.mjSTATE_FULLPHYSICS
        for seed in seeds(episodes):
            self.env.reset(seed=seed)
            mean, total = np.zeros(shape), 0.0
            for _ in range(steps):
                state = np.empty(mujoco.mj_stateSize(self.model, signature))
                mujoco.mj_getState(self.model, self.data, state, signature)
                plan, _ = search(state, mean)
                action = np.clip(plan[0], -1, 1) * self.model.actuator_ctrlrange[:, 1]
                _, _, terminated, _, _ = self.env.step(action.astype(np.float32))
                after = np.empty_like(state)
                mujoco.mj_getState(self.model, self.data, after, signature)
                total += float(self.reward(np.stack([state, after])[None], action[None, None])[0, 0])
                if terminated:
                    break
                mean = np.concatenate([plan[1:], plan[-1:]])
            returns.append(total)
        return returns


def reacher(episodes: int) -> list[float]:
    """Reacher-v5, 50 steps: minus the distance and the effort."""

    def reward(states: np.ndarray, actions: np.ndarray) -> np.ndarray:
        first, second = states[:, 1:, 1], states[:, 1:, 1] + states[:, 1:, 2]
        x, y = 0.1 * np.cos(first) + 0.11 * np.cos(second), 0.1 * np.sin(first) + 0.11 * np.sin(second)
        away = np.hypot(x - states[:, 1:, 3], y - states[:, 1:, 4])
        return -away - (actions**2).sum(-1)

    return Simulated("Reacher-v5", reward, 20).returns(50, episodes)


def hopper(episodes: int, steps: int = 100) -> list[float]:
    """Hopper-v5, 100 steps: its speed and 1 a step, minus the effort, until it falls."""

    def reward(states: np.ndarray, actions: np.ndarray) -> np.ndarray:
        place, height, angle = states[:, :, 1], states[:, 1:, 2], states[:, 1:, 3]
        standing = (height > 0.7) & (np.abs(angle) < 0.2)
        before = np.concatenate([np.ones_like(standing[:, :1]), np.cumprod(standing, axis=1)[:, :-1].astype(bool)], 1)
        return before * (np.diff(place, axis=1) / 0.008 + 1.0 - 0.001 * (actions**2).sum(-1))

    return Simulated("Hopper-v5", reward, 100).returns(steps, episodes)


def acrobot(episodes: int) -> list[float]:
    """Acrobot-v1: -1 a step until the tip is up. Nothing is random: one plan is searched for a whole episode."""
    env = gym.make("Acrobot-v1")
    own: Any = env.unwrapped
    rng, steps, best = np.random.default_rng(0), 120, []

    def rate(state: np.ndarray, plans: np.ndarray) -> np.ndarray:
        now, total, alive = np.repeat(state[:, None], len(plans), 1), np.zeros(len(plans)), np.ones(len(plans), bool)
        for torque in np.sign(plans[:, :, 0]).T:

            def slope(y: np.ndarray, torque: np.ndarray = torque) -> np.ndarray:
                return np.array(own._dsdt(np.concatenate([y, torque[None]]))[:4])

            one = slope(now)
            two = slope(now + 0.1 * one)
            three = slope(now + 0.1 * two)
            four = slope(now + 0.2 * three)
            now = now + 0.2 / 6 * (one + 2 * two + 2 * three + four)
            now[:2] = (now[:2] + np.pi) % (2 * np.pi) - np.pi
            now[2:] = np.clip(now[2:], [[-own.MAX_VEL_1], [-own.MAX_VEL_2]], [[own.MAX_VEL_1], [own.MAX_VEL_2]])
            alive &= ~(-np.cos(now[0]) - np.cos(now[0] + now[1]) > 1)
            total -= alive
        return total

    def draw(mean: np.ndarray, spread: np.ndarray, plans: int) -> np.ndarray:
        held = rng.standard_normal((plans, steps // 4, 1)).repeat(4, 1)
        return mean + spread * held

    search = searched(rate, draw, (steps, 1), rounds=30)
    for seed in seeds(episodes):
        env.reset(seed=seed)
        best.append(search(np.array(own.state, np.float64), np.zeros((steps, 1)), plans=400, elites=20)[1])
    return best


def table(name: str, steps: int) -> float:
    """The best expected return of one of Gymnasium's finite environments, by value iteration on its own table."""
    env: Any = gym.make(name).unwrapped
    value = np.zeros(len(env.P))
    for _ in range(steps):
        value = np.array(
            [
                max(
                    sum(p * (reward + (0.0 if over else value[to])) for p, to, reward, over in row)
                    for row in rows.values()
                )
                for rows in env.P.values()
            ]
        )
    return float(env.initial_state_distrib @ value)
