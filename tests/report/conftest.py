"""Runs to report on, real and made by hand, and one browser for all who look at pages."""

import shutil
from dataclasses import replace
from importlib.util import find_spec
from typing import Any

import numpy as np
import pytest
from gymnasium import spaces

from maxplore.runs import run as running
from maxplore.runs.coded import encoded
from maxplore.runs.directory import Folder, RunConfig, as_text
from maxplore.runs.plain import space_to_plain
from maxplore.runs.record import Episode, Record, Step

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
FLAGS = [
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
]

REAL = "maxplore/MountainCar-v0"


@pytest.fixture(scope="session")
def car(tmp_path_factory):
    """A real run of real states, with four landscapes."""
    path = tmp_path_factory.mktemp("report") / "car"
    few = {"members": 2, "plan_every": 30}
    with running.new(path, REAL, preset="smoke", checkpoint_every=20, steps=80, settings=few) as run:
        run.explore(80)
    return path


@pytest.fixture(scope="session")
def chain(tmp_path_factory):
    """A real run on a chain, with four landscapes."""
    path = tmp_path_factory.mktemp("report") / "chain"
    few, short = {"members": 2, "iterations": 3}, {"length": 6}
    asked: dict[str, Any] = {"preset": "smoke", "checkpoint_every": 10, "steps": 40, "settings": few}
    with running.new(path, "maxplore/Chain-v0", env_kwargs=short, **asked) as run:
        run.explore(40)
    return path


CONFIG = RunConfig(
    env=REAL,
    env_kwargs={},
    method="max",
    preset="smoke",
    seed=0,
    horizon=None,
    settings={},
    until_utility=0.0,
    checkpoint_every=10,
    step_limit=None,
    power_safe=False,
    observation_space={},
    action_space={},
    versions={"maxplore": "0"},
    in_force={},
    command="",
    name="0",
)


def walked(path, dims=2, steps=50, space=None, **config):
    """The folder of a run that never was: a random walk."""
    path.mkdir(parents=True)
    draw = np.random.default_rng(steps)
    seen = space or spaces.Box(-10.0, 10.0, (dims,), np.float32)
    moves = spaces.Box(-1.0, 1.0, (1,), np.float32)
    folder = Folder(path)
    own = {"observation_space": space_to_plain(seen), "action_space": space_to_plain(moves)}
    asked = replace(CONFIG, **own, **config)
    folder.write_config(asked)
    walk = np.clip(np.cumsum(draw.normal(size=(steps + 1, dims)), axis=0) / 10, -10, 10).astype(np.float32)
    rows = [encoded(seen, row if space is None else spaces.unflatten(space, row)) for row in walk]
    begun, seed = Episode(0, 0, 0, rows[0]), float(config.get("seed", 0))
    with Record.create(folder.record, as_text(asked)) as record:
        record.aim(steps)
        for k in range(steps):
            step = Step(k, 0, encoded(moves, [0.0]), rows[k + 1], 0.0, False, False)
            told = {"coverage": k + seed, "error": 1.0 / (1 + k + seed), "calibration": 0.7}
            record.write(step, episode=begun if k == 0 else None, metrics=told if k % 10 == 0 else None)
    return path


@pytest.fixture(scope="session")
def handmade():
    """A way to make the folder of a run that never was."""
    return walked


@pytest.fixture(scope="session")
def browser():
    """A real Chromium, started once, with a new and empty profile."""
    if CHROMIUM is None:
        pytest.skip("no chromium; apt-get install chromium")
    if find_spec("playwright") is None:
        pytest.skip("no playwright; pip install maxplore[dev]")
    from playwright.sync_api import sync_playwright

    with sync_playwright() as started:
        own = started.chromium.launch(executable_path=CHROMIUM, args=FLAGS)
        yield own
        own.close()
