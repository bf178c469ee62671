"""Shapes and types are checked, warnings are errors (pyproject.toml), ranks never promote silently."""

import os

import jax
import pytest
from jaxtyping import install_import_hook

# Most of the suite's time is compilation, and each worker has one core: compile quickly, and with one thread.
os.environ.setdefault("XLA_FLAGS", "--xla_backend_optimization_level=1 --xla_cpu_multi_thread_eigen=false")
jax.config.update("jax_numpy_rank_promotion", "raise")
install_import_hook("maxplore", "beartype.beartype")


@pytest.fixture(scope="module", autouse=True)
def forget():  # pyright: ignore[reportUnusedFunction]
    """What a module compiled serves no other, and thousands of compiled functions are more than a process may map."""
    yield
    jax.clear_caches()
