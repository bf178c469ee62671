"""Every block of code on the pages runs, and every command on them is understood."""

import re
import shlex
import subprocess
import sys
from pathlib import Path
from typing import Any, ClassVar

import gymnasium as gym
import pytest

import maxplore
import maxplore_cli
from examples.own_solver import Shooting
from maxplore.entry import Entry
from maxplore.experiments import EXPERIMENTS
from maxplore.exploit.real import configured
from maxplore.methods import model_based
from tests import test_examples

ROOT = Path(__file__).parents[1]
PAGES = ["README.md", *sorted(str(path.relative_to(ROOT)) for path in (ROOT / "docs").rglob("*.md"))]


class Hasty(maxplore.Explorer):
    """Solves a task in no time, and badly; the next one is the same."""

    solved = None

    hasty: ClassVar[dict[str, Any]] = {
        "members": 2,
        "depth": 1,
        "most_steps": 5,
        "solver": Shooting(plans=4, pushes=1, held=2),
    }

    def exploit(self, *arguments, **settings):
        self.solved = self.solved or super().exploit(*arguments, **self.hastily(settings))
        return self.solved

    def task_model(self, **settings):
        return super().task_model(**self.hastily(settings))

    def hastily(self, settings):
        settings.pop("solver_episodes", None)  # those of the solver that is replaced
        return {**settings, **self.hasty}


def given():
    """What the page about tasks begins with: an explorer that has explored."""
    env = gym.make("Pendulum-v1", max_episode_steps=4)
    explorer = Hasty(env.observation_space, env.action_space, method="random")
    explorer.explore(env, steps=20)
    return {
        "maxplore": maxplore,
        "env": env,
        "explorer": explorer,
        "observation": env.reset(seed=0)[0],
        "reward": lambda s, a, s2: s2[0] - 0.1 * (a**2).sum(),
    }


GIVEN = {"docs/exploitation.md": given}


def blocks(page):
    """The Python of a page: whether it is run, and the code."""
    found = re.findall(r"^```python( no-run)?\n(.*?)^```", (ROOT / page).read_text(), re.MULTILINE | re.DOTALL)
    return [(not apart, code) for apart, code in found]


def test_the_readme_reaches_its_goal_as_printed(tmp_path):
    """With the options of a user's compiler. Ten seeds: `python benchmarks/readme.py`."""
    command = [sys.executable, ROOT / "benchmarks" / "readme.py", "--seeds", "1", "--out", tmp_path]
    subprocess.run(command, check=True, timeout=300)


@pytest.mark.parametrize("page", [page for page in PAGES if page != "README.md" and blocks(page)])
def test_the_code_of_a_page_runs_from_top_to_bottom(page, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    names = GIVEN[page]() if page in GIVEN else {}
    for run, code in blocks(page):
        if whole := re.fullmatch(r'--8<-- "(.*)"\n', code):  # a file, which has tests of its own
            assert whole[1] in test_examples.EXAMPLES
            continue
        program = compile(code, page, "exec")
        if run:
            exec(program, names)


def commands(page):
    """What a page says to type: lines of its plain blocks, and spans within its sentences."""
    text = (ROOT / page).read_text()
    for block in re.findall(r"^```\n(.*?)^```", text, re.MULTILINE | re.DOTALL):
        yield from re.findall(r"^\s*(maxplore [^#\n]*)", block, re.MULTILINE)
    prose = re.sub(r"^```.*?^```", "", text, flags=re.MULTILINE | re.DOTALL)
    yield from re.findall(r"`(maxplore [a-z]+ [^`]*)`", prose)


TYPED = sorted({" ".join(command.split()) for page in PAGES for command in commands(page) if "..." not in command})


@pytest.mark.parametrize("command", TYPED)
def test_a_command_is_understood(command):
    asked, settings = maxplore_cli.parsed(shlex.split(command)[1:])
    box = Entry((19,)), Entry((6,))
    if isinstance(asked, maxplore_cli.Explore):
        assert model_based(asked.method, asked.preset, settings, *box)
    elif isinstance(asked, maxplore_cli.Exploit | maxplore_cli.Rehearse):
        assert configured(*box, settings)
    elif isinstance(asked, maxplore_cli.Reproduce):
        assert asked.figure in {*EXPERIMENTS, "all"} or asked.figure.isupper()


def test_the_readme_fits_on_two_screens_and_its_links_lead_somewhere():
    text = (ROOT / "README.md").read_text()
    assert len(text.splitlines()) <= 90
    for link, place in re.findall(r"\]\((?!https:)([^)#]+)#?([^)]*)", text):
        assert (ROOT / link).exists(), link
        if place:
            heads = re.findall(r"^#+ (.+)$", (ROOT / link).read_text(), re.MULTILINE)
            assert place in {re.sub(r"[^\w -]", "", head).strip().lower().replace(" ", "-") for head in heads}, place
