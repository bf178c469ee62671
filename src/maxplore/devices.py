"""Where an ensemble is computed: its members dealt out to a row of devices.

Each device holds some of the members and computes them with the code that one device has for all. Training needs no
word between devices; where members meet (a divergence, a drawn member) what they predict is brought together, which is
small beside their weights. With one device there is no mesh, and nothing of this is in the way.
"""

from collections.abc import Callable
from typing import Any, TypeVar

import jax
from jax.sharding import AxisType, Mesh, NamedSharding, PartitionSpec

from maxplore import checks
from maxplore.errors import InputError

AXIS = "members"

Tree = TypeVar("Tree")


class DevicesError(InputError):
    """There are no such devices, or not for this ensemble."""


def row(count: int, members: int) -> Mesh | None:
    """The first `count` devices of this process for an ensemble of so many `members`; None for one device.

    It is what `Explorer(..., devices=2)` gives to its `GaussianEnsemble(..., mesh=row(2, members))`.

    >>> row(1, members=5) is None
    True
    """
    if counted(count) == 1:
        return None
    if members % count:
        fitting = ", ".join(str(n) for n in range(1, members + 1) if members % n == 0)
        raise DevicesError(
            f"devices is {count}, expected a number that divides the {members} members evenly: {fitting}; or other "
            "members"
        )
    return line_of(count, AXIS)


def counted(count: Any) -> int:
    """A number of devices, or a `DevicesError` if that is none."""
    try:
        return checks.counted("devices", count)
    except InputError as error:
        raise DevicesError(str(error)) from None


def line_of(count: int, axis: str) -> Mesh:
    """A mesh of the first `count` devices of this process along one axis, or an `InputError`."""
    found = jax.local_devices()
    if count > len(found):
        kind = found[0].platform
        hint = f": set JAX_NUM_CPU_DEVICES={count} in the environment for as many virtual ones" if kind == "cpu" else ""
        raise DevicesError(f"devices is {count}, expected at most {len(found)}, the {kind} devices found here{hint}")
    return jax.make_mesh((count,), (axis,), axis_types=(AxisType.Auto,), devices=found[:count])


def each(mesh: Mesh | None, function: Callable[..., Tree], own: Any, *shared: Any) -> Tree:
    """`function(own, *shared)`, computed by each device for its part of `own`.

    `own` has the members along the leading axis of every array, and so has the result; `shared` is the same for all.
    """
    if mesh is None:
        return function(own, *shared)
    dealt, same = PartitionSpec(AXIS), PartitionSpec()
    specs = (dealt, *(same for _ in shared))
    return jax.shard_map(function, mesh=mesh, in_specs=specs, out_specs=dealt, check_vma=False)(own, *shared)


def dealt(mesh: Mesh | None, tree: Tree) -> Tree:
    """Arrays with a leading member axis, each device holding its own part."""
    return tree if mesh is None else jax.lax.with_sharding_constraint(tree, NamedSharding(mesh, PartitionSpec(AXIS)))


def together(mesh: Mesh | None, tree: Tree) -> Tree:
    """Arrays brought together: every device holds all of them."""
    return tree if mesh is None else jax.lax.with_sharding_constraint(tree, NamedSharding(mesh, PartitionSpec()))
