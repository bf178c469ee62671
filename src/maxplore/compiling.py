"""The one way to compile: no program of ours runs under XLA's concurrency-optimised scheduler, and each is watched.

With jaxlib 0.10.2 that scheduler of the CPU backend can stop for good in programs such as ours, all threads asleep;
which programs do depends on the machine. The option is given with every compilation: so it holds however JAX was
started, and by whom.
"""

from collections.abc import Callable
from functools import cache, wraps
from typing import Any, ParamSpec, TypeVar, overload

import equinox as eqx
import jax
from jax.extend.core import get_opaque_trace_state

from maxplore import stalls

OPTIONS = {"xla_cpu_scheduler_type": "CPU_SCHEDULER_TYPE_MEMORY_OPTIMIZED"}
"""Of every compilation for the CPU. `xla_cpu_enable_concurrency_optimized_scheduler` works in XLA_FLAGS only: with a
compilation it is accepted, and changes nothing."""

Given = ParamSpec("Given")
Result = TypeVar("Result")

_TOP = get_opaque_trace_state()
"""Where nothing is being traced."""


@overload
def compiled(
    function: Callable[Given, Result], /, *, filtered: bool = ..., **options: Any
) -> Callable[Given, Result]: ...
@overload
def compiled(
    *, filtered: bool = ..., **options: Any
) -> Callable[[Callable[Given, Result]], Callable[Given, Result]]: ...


def compiled(function: Any = None, /, *, filtered: bool = True, **options: Any) -> Any:
    """Compile a function, as a decorator: with `equinox.filter_jit`, or if not `filtered` with `jax.jit`, which takes
    arrays alone and spares microseconds.

    A call returns when its program has ended. Inside other compiled code, or a transformation, it is a part of that.

    >>> compiled(lambda x: x + 1)(jax.numpy.ones(2)).tolist()
    [2.0, 2.0]
    """
    if function is None:
        return lambda function: compiled(function, filtered=filtered, **options)
    name = getattr(function, "__name__", repr(function))
    by: Any = eqx.filter_jit if filtered else jax.jit
    inside = by(function, **options)
    alone: Any = None

    @wraps(function)
    def call(*given: Any, **named: Any) -> Any:
        nonlocal alone
        if get_opaque_trace_state() != _TOP:
            return inside(*given, **named)
        if alone is None:
            alone = by(function, compiler_options=compiler_options(), **options)
        with stalls.watched(name):
            result = alone(*given, **named)
            return result if filtered else jax.block_until_ready(result)  # equinox waits by itself

    return call


@cache
def compiler_options() -> dict[str, Any]:
    """What every compilation is told, whatever it is for: beside a GPU work may be given to the CPU. Nothing where XLA
    knows of no such scheduler."""
    try:
        jax.jit(lambda: 0, compiler_options=OPTIONS).lower().compile()
    except jax.errors.JaxRuntimeError:
        return {}
    return OPTIONS
