"""Counts what XLA compiles."""

from collections.abc import Generator
from contextlib import contextmanager

import jax.monitoring

_seen: list[str] = []


def _listen(event: str, duration_secs: float, **kwargs: str | int) -> None:
    del duration_secs, kwargs
    if event == "/jax/core/compile/backend_compile_duration":
        _seen.append(event)


jax.monitoring.register_event_duration_secs_listener(_listen)


@contextmanager
def compilations() -> Generator[list[str]]:
    """A list that, once the block is done, has one entry for everything compiled inside it."""
    before, found = len(_seen), list[str]()
    yield found
    found.extend(_seen[before:])
