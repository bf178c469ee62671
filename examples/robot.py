"""Ask and tell with a robot that has a loop, a clock and a safety stop of its own; here a simulated one.

python examples/robot.py [--steps 200] [--out runs/robot]

A servo swings an arm against gravity. What an operator once did with it is told first. Then it explores, in two
sessions with a night between them, and learns at last to hold the arm half-way up, which nobody had in mind before.
"""

import argparse
import math
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import jax.numpy as jnp
import numpy as np
from gymnasium.spaces import Box
from jax import Array

import maxplore

TICK = 0.05
"""Seconds between two commands."""
OBSERVATIONS = Box(np.array([-3.0, -15.0]), np.array([3.0, 15.0]), dtype=np.float64)
"""Angle in radians, 0 hanging down, and angular velocity in radians a second."""
COMMANDS = Box(-5.0, 5.0, (1,), np.float64)
"""Torque in newton metres."""


class Servo:
    """The robot: everything about it is its own, the clock too. An explorer never sees this class."""

    LIMIT = 2.0
    """Angle beyond which the safety stop cuts in."""

    def __init__(self, seed: int = 0) -> None:
        self.numbers = np.random.default_rng(seed)
        self.clock, self.stops = 0.0, 0
        self.angle = self.velocity = 0.0

    def read(self) -> np.ndarray:
        """What the sensors say, noise included."""
        return np.array([self.angle, self.velocity]) + self.numbers.normal(0, (0.005, 0.05))

    def drive(self, torque: float) -> bool:
        """A torque for one tick. Whether the safety stop cut in."""
        for _ in range(10):
            acceleration = torque - 4.0 * math.sin(self.angle) - 0.5 * self.velocity
            self.velocity += TICK / 10 * acceleration
            self.angle += TICK / 10 * self.velocity
        self.clock += TICK
        stopped = bool(abs(self.angle) > self.LIMIT)
        self.stops += stopped
        return stopped

    def home(self) -> None:
        """Back to where it hangs, slowly, by the robot's own controller."""
        self.angle, self.velocity = self.numbers.normal(0, 0.05, 2)
        self.clock += 3.0


class Tick(NamedTuple):
    """One line of a log."""

    seen: np.ndarray
    torque: np.ndarray
    after: np.ndarray
    stopped: bool


def by_hand(servo: Servo, ticks: int) -> Iterator[Tick]:
    """What an operator does: slow swings."""
    servo.home()
    seen = servo.read()
    for tick in range(ticks):
        torque = np.array([2.0 * math.sin(0.2 * tick)])
        stopped = servo.drive(torque[0])
        yield Tick(seen, torque, (after := servo.read()), stopped)
        if stopped:
            servo.home()
        seen = servo.read() if stopped else after


def session(servo: Servo, explorer: maxplore.Explorer, ticks: int) -> None:
    """The robot's own loop, which asks for commands and tells what came of them."""
    servo.home()
    seen = servo.read()
    for tick in range(ticks):
        torque = explorer.ask(seen)
        stopped = servo.drive(torque[0])
        after = servo.read()
        # A stop ends the episode. The models learn where, and imagined walks end there too: nothing is gained beyond.
        last = tick == ticks - 1
        explorer.tell(seen, torque, after, terminated=stopped, truncated=last and not stopped)
        if stopped:
            servo.home()
        seen = servo.read() if stopped else after


def half_way(state: Array, action: Array, next_state: Array) -> Array:
    """Hold the arm half-way up, at 1 radian. Written for one transition, in the robot's own units.

    It pays for being there, and fines nothing: the safety stop, which ends everything, would be the way out of fines.
    """
    return jnp.exp(-4.0 * (next_state[0] - 1.0) ** 2)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--steps", type=int, default=200)
    parser.add_argument("--out", type=Path, default=Path("runs/robot"))
    arguments = parser.parse_args()

    servo = Servo(seed=0)
    explorer = maxplore.Explorer(OBSERVATIONS, COMMANDS, seed=0, horizon=100)
    for line in list(by_hand(servo, 60)):  # a log of last week: it counts as D, and towards the warm-up
        explorer.tell(line.seen, line.torque, line.after, terminated=line.stopped)
    print(f"told of {explorer.steps} ticks of a log")

    session(servo, explorer, arguments.steps // 2)
    explorer.save(arguments.out)  # everything: D, models, plans
    explorer = maxplore.load(arguments.out)  # another day, another process
    session(servo, explorer, arguments.steps - arguments.steps // 2)
    angles = np.asarray(explorer.history.transitions.next_state)[: explorer.steps, 0]
    print(f"{explorer.steps} ticks, {servo.stops} safety stops, {servo.clock:.0f} s by the robot's clock")
    before, now = angles[:60], angles[60:]
    print(f"angles from {now.min():.2f} to {now.max():.2f}, by hand {before.min():.2f} to {before.max():.2f}")

    policy = explorer.exploit(half_way, horizon=60)
    print(f"hold it half-way up: {policy.report}")
    servo.home()
    seen, paid = servo.read(), 0.0
    for _ in range(60):
        torque = policy(seen)
        servo.drive(torque[0])
        seen, before = servo.read(), seen
        paid += policy.paid(before, torque, seen)
    print(f"in fact it was paid {paid:.1f}, and ended at {servo.angle:.2f} rad")


if __name__ == "__main__":
    main()
