"""What reaches wandb, told by one that only listens; wandb itself is not needed here."""

import sys
from types import SimpleNamespace

import pytest

from maxplore import InputError
from maxplore.runs.wandb import Wandb


@pytest.fixture
def heard(monkeypatch):
    """All that wandb is told, in its order."""
    calls = []

    def init(**named):
        calls.append(("init", named))
        return SimpleNamespace(
            log=lambda values, step: calls.append(("log", values, step)), finish=lambda: calls.append(("finish",))
        )

    monkeypatch.setitem(sys.modules, "wandb", SimpleNamespace(init=init))
    return calls


def test_a_run_is_told_from_its_start_to_its_end(heard):
    with Wandb("maze", "first", {"members": 5}, resume_id="first-1") as run:
        run.write(3, {"loss": 0.5})
        run.write(4, {"loss": 0.25, "coverage": 1.0})
    named = {"project": "maze", "name": "first", "config": {"members": 5}, "id": "first-1", "resume": "allow"}
    assert heard == [
        ("init", named),
        ("log", {"loss": 0.5}, 3),
        ("log", {"loss": 0.25, "coverage": 1.0}, 4),
        ("finish",),
    ]


def test_without_wandb_one_is_told_what_to_install(monkeypatch):
    monkeypatch.setitem(sys.modules, "wandb", None)
    with pytest.raises(InputError, match=r"wandb cannot be imported .*: pip install maxplore\[wandb\]") as caught:
        Wandb("maze", "first", {}, resume_id="first-1")
    assert "\n" not in str(caught.value)


def test_a_start_that_fails_is_told_in_one_line(monkeypatch):
    def init(**named):
        raise RuntimeError("api_key not configured\n(no-tty)")

    monkeypatch.setitem(sys.modules, "wandb", SimpleNamespace(init=init))
    with pytest.raises(InputError, match=r"wandb does not start \(api_key not configured \(no-tty\)\): try") as caught:
        Wandb("maze", "first", {}, resume_id="first-1")
    assert "\n" not in str(caught.value)
