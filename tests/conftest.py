"""Shapes and types are checked, warnings are errors (pyproject.toml), ranks never promote silently."""

import os
from pathlib import Path

import jax
import pytest
from jaxtyping import install_import_hook

# Most of the suite's time is compilation, and each worker has one core: compile quickly, and with one thread. The older
# emitters of fused loops compile in two thirds of the time.
os.environ.setdefault(
    "XLA_FLAGS",
    "--xla_backend_optimization_level=1 --xla_cpu_multi_thread_eigen=false --xla_cpu_use_fusion_emitters=false",
)
os.environ.setdefault("JAX_DISABLE_MOST_OPTIMIZATIONS", "true")  # of processes that tests start
jax.config.update("jax_numpy_rank_promotion", "raise")
install_import_hook("maxplore", "beartype.beartype")

MOST_MAPS = 20_000
"""Linux, by default, lets a process map 65,530 pieces of memory, and then refuses."""


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Say in one line what was left out for want of a browser."""
    reasons = [str(own.longrepr) for own in terminalreporter.stats.get("skipped", [])]
    for missing in ("no chromium; apt-get install chromium", "no playwright; pip install maxplore[dev]"):
        if count := sum(missing in reason for reason in reasons):
            terminalreporter.write_line(f"left out {count} browser tests: {missing}")


LEARNING = ("tests.experiments", "tests.exploit", "tests.explorers", "tests.solvers")
"""Where more time goes by in what was compiled than in compiling it."""


@pytest.fixture(scope="module", autouse=True)
def compiled_quickly(request: pytest.FixtureRequest):  # pyright: ignore[reportUnusedFunction]
    """Elsewhere nothing runs for long: what is hardly optimised is compiled in two thirds of the time."""
    jax.config.update("jax_disable_most_optimizations", not request.module.__name__.startswith(LEARNING))


@pytest.fixture(autouse=True)
def patient(monkeypatch: pytest.MonkeyPatch):  # pyright: ignore[reportUnusedFunction]
    """However long a task takes to solve here, nothing is told on the way unless it is asked for."""
    monkeypatch.setattr("maxplore.progress.FIRST", 1e6)


@pytest.fixture(scope="module", autouse=True)
def forget():  # pyright: ignore[reportUnusedFunction]
    """Thousands of compiled functions are more than a process may map: forget them before there are too many."""
    yield
    maps = Path("/proc/self/maps")
    if not maps.exists() or maps.read_bytes().count(b"\n") > MOST_MAPS:
        jax.clear_caches()
