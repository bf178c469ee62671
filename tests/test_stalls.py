"""Programs that never return are told of, and nobody else is."""

import subprocess
import sys
import textwrap
import threading
import warnings

import jax
import jax.numpy as jnp
import pytest

from maxplore import stalls
from maxplore.compiling import compiled


@pytest.fixture
def told(monkeypatch):
    """What is told of calls under way, one of a program called slow among them."""
    said = list[str]()
    monkeypatch.setattr(stalls, "_stuck", said.append)
    monkeypatch.setattr(stalls, "_under_way", {threading.get_ident(): stalls.Call("slow")})
    return said


def looks(seconds, *, passed=1.0, share=0.0):
    """Look once for every second, at a program that gets this share of a processor."""
    spent = 0.0
    for _ in range(seconds):
        stalls.look(passed, lambda _, now=spent: now)
        spent += share * min(passed, 2.0)


def test_a_program_that_gets_no_processor_time_is_told_of_once(told):
    looks(300)
    (line,) = told
    assert "the compiled program slow got 0.0 seconds" in line


@pytest.mark.parametrize("share", [0.02, 1.0, 2.0])
def test_a_program_that_works_is_not(told, share):
    looks(300, share=share)
    assert not told


def test_time_asleep_does_not_count(told):
    looks(29, passed=3600.0)
    assert not told


def test_a_program_that_ended_is_forgotten(told):
    looks(40)
    stalls._under_way.clear()
    looks(40)
    assert not told


def wait_for(event):
    """A program that waits until the event."""

    def wait(x):
        event.wait(120)
        return x

    return compiled(lambda x: jax.pure_callback(wait, jax.ShapeDtypeStruct((), jnp.float32), x))


@pytest.fixture
def impatient(monkeypatch):
    """Look often, and wait for a moment only."""
    monkeypatch.setattr(stalls, "TICK", 0.05)
    monkeypatch.setattr(stalls, "WINDOW", 0.5)
    monkeypatch.setattr(stalls, "LEAST", 0.1)


def test_a_library_call_that_waits_for_ever_warns_and_goes_on(impatient, monkeypatch):
    event, said = threading.Event(), list[str]()

    def stuck(text):
        said.append(text)
        event.set()

    monkeypatch.setattr(stalls, "_stuck", stuck)
    assert float(wait_for(event)(jnp.float32(3))) == 3.0
    assert said
    with pytest.warns(RuntimeWarning, match="end the process from outside"):
        stalls._warn("it waits")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        stalls._warn("where warnings are errors it is told all the same")


STUCK_COMMAND = """
    import sys, threading, jax, jax.numpy as jnp
    import maxplore_cli
    from maxplore import stalls
    from maxplore.compiling import compiled
    from maxplore.explorers import model_based

    def wait(x):
        threading.Event().wait()
        return x

    @compiled
    def for_ever(x):
        return jax.pure_callback(wait, jax.ShapeDtypeStruct((), jnp.float32), x)

    def fit(*given, **named):
        stalls.TICK, stalls.WINDOW, stalls.LEAST = 0.05, 0.5, 0.1
        return for_ever(jnp.float32(1))

    model_based.fit = fit
    sys.exit(maxplore_cli.main(sys.argv[1:]))
"""


def test_a_command_that_is_stuck_ends_with_a_status_of_its_own_and_keeps_what_it_has(tmp_path):
    import maxplore
    import maxplore_cli

    out = tmp_path / "run"
    words = ["explore", "Pendulum-v1", "--preset", "smoke", "--steps", "40", "--progress", "quiet", "--out", str(out)]
    ended = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(STUCK_COMMAND), *words], capture_output=True, text=True, timeout=300
    )
    assert ended.returncode == stalls.STUCK, ended.stderr
    assert "the compiled program for_ever got" in ended.stderr
    assert "maxplore resume" in ended.stderr
    kept = maxplore.load(out).steps
    assert 0 < kept < 40
    assert maxplore_cli.main(["resume", str(out), "--progress", "quiet"]) == 0
    assert maxplore.load(out).steps == 40
