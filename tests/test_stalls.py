"""Programs that never return are told of, and nobody else is."""

import subprocess
import sys
import textwrap
import threading
import time
import warnings
from pathlib import Path

import jax
import jax.numpy as jnp
import pytest

import maxplore
import maxplore_cli
from maxplore import stalls
from maxplore.compiling import compiled
from maxplore.sweep import Trial, done
from maxplore.sweep.work import work


@pytest.fixture
def told(monkeypatch):
    """What is told of calls under way, one of a program called slow among them."""
    said = list[str]()
    monkeypatch.setattr(stalls, "_stuck", said.append)
    monkeypatch.setattr(stalls, "_under_way", {threading.get_ident(): stalls.Call("slow")})
    return said


def looks(seconds, *, passed=1.0, share=0.0, ready=False):
    """Look once for every second, at a program that gets this share of a processor, and may be ready for more."""
    spent = 0.0
    for _ in range(seconds):
        stalls.look(passed, lambda _, now=spent: (now, ready))
        spent += share * min(passed, 2.0)


def test_a_program_that_gets_no_processor_time_is_told_of_once(told):
    looks(300)
    (line,) = told
    assert "the compiled program slow got 0.0 seconds" in line


@pytest.mark.parametrize("share", [0.02, 1.0, 2.0])
def test_a_program_that_works_is_not(told, share):
    looks(300, share=share)
    assert not told


def test_a_program_that_waits_for_a_processor_is_not(told):
    """With a low priority on a busy machine it gets none for minutes."""
    looks(300, ready=True)
    assert not told


@pytest.mark.skipif(not Path("/proc/self/task").exists(), reason="only Linux tells what threads do")
def test_what_a_program_gets_is_told_from_what_pythons_other_threads_do():
    ended = threading.Event()

    def spin(until):
        while not until.is_set():
            pass

    def measured(of):
        call = stalls.Call("asleep")
        call.thread = of
        begin = stalls._measured(call)[0]
        while time.process_time() < now + 0.5:
            time.sleep(0.01)
        return stalls._measured(call)[0] - begin

    other = threading.Thread(target=spin, args=(ended,))
    other.start()
    now = time.process_time()
    assert measured(threading.get_ident()) < 0.25, "the thread that spins is another"
    now = time.process_time()
    assert measured(other.ident) > 0.25, "it is the program's own"
    call = stalls.Call("spinning")
    call.thread = other.ident or 0
    assert stalls._measured(call)[1], "and it is ready for more"
    ended.set()
    other.join()


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


WAITING = """
    import os, sys, threading, jax, jax.numpy as jnp
    import maxplore_cli
    from maxplore import stalls
    from maxplore.compiling import compiled
    from maxplore.explorers import model_based
    from maxplore.sweep import work

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
"""
COMMAND = "sys.exit(maxplore_cli.main(sys.argv[1:]))"
WORKER = "sys.argv.append(str(os.getppid())); sys.exit(work.main())"


def waits(begin, *words):
    """Run this in a process whose first fit waits for ever."""
    code = [sys.executable, "-c", textwrap.dedent(WAITING) + begin, *map(str, words)]
    ended = subprocess.run(code, capture_output=True, text=True, timeout=300)
    assert ended.returncode == stalls.STUCK, ended.stderr
    assert "the compiled program for_ever got" in ended.stderr
    return ended.stderr


def test_a_command_that_is_stuck_ends_with_a_status_of_its_own_and_keeps_what_it_has(tmp_path):
    out = tmp_path / "run"
    words = ["explore", "Pendulum-v1", "--preset", "smoke", "--steps", "40", "--progress", "quiet", "--out", out]
    assert "maxplore resume" in waits(COMMAND, *words)
    kept = maxplore.load(out).steps
    assert 0 < kept < 40
    assert maxplore_cli.main(["resume", str(out), "--progress", "quiet"]) == 0
    assert maxplore.load(out).steps == 40


def test_another_worker_goes_on_where_one_was_stuck(tmp_path):
    trial, order, run = Trial("Pendulum-v1", "max", 3, 40, "smoke"), tmp_path / "trial.json", tmp_path / "run"
    trial.write(order)
    waits(WORKER, order, run)
    assert 0 < done(trial, run).steps < 40
    assert work(trial, run)
    assert done(trial, run).ends(trial)


def test_what_follows_a_command_in_a_process_is_only_warned_of():
    before = stalls._stuck
    assert maxplore_cli.main(["list"]) == 0
    assert stalls._stuck is before
