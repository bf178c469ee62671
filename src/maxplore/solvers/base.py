"""What a solver of the exploration MDP is: a policy for one real state, and what it remembers for the next.

A whole solve is one compiled function. It is compiled anew only when a capacity or a setting changes, never because
the model was refitted or D has grown within its capacity.
"""

from abc import abstractmethod
from collections.abc import Callable
from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.core
import jax.numpy as jnp
from jaxtyping import Array, Float, Int, PRNGKeyArray, Shaped

from maxplore.compiling import compiled
from maxplore.entry import Numbers
from maxplore.errors import InputError
from maxplore.history import History
from maxplore.mdp import ExplorationMDP, Step
from maxplore.models.gaussian import GaussianEnsemble
from maxplore.pieces import in_pieces


class Policy(eqx.Module):
    """What to do in one state: a pytree, so it passes through `jit` and `vmap`."""

    @abstractmethod
    def __call__(self, state: Shaped[Array, "*state"], *, key: PRNGKeyArray | None = None) -> Shaped[Array, "*action"]:
        """The action for `state`: the policy's mode, or with a `key` a draw from it. Real actions are in [-1, 1]."""

    def later(self, steps: int | Int[Array, ""]) -> "Policy":
        """The policy so many real steps after it was found."""
        return self


class Worth(eqx.Module):
    """What a state is worth by a solver's own account: the discounted utility of its policy from there on, and for
    those that look for entropy what that is worth to them."""

    discount: float = eqx.field(static=True)

    @abstractmethod
    def __call__(self, state: Float[Array, " dims"]) -> Float[Array, ""]:
        """Of one state."""


class SolveInfo(NamedTuple):
    """What came of a solve. What a solver does not have is NaN."""

    before: Float[Array, ""]
    """Utility per imagined step at the beginning of the solve."""
    after: Float[Array, ""]
    """Utility per imagined step at its end."""
    policy_loss: Float[Array, ""]
    """Of the last update."""
    value_loss: Float[Array, ""]
    """Mean squared error of the value in the last update."""
    entropy: Float[Array, ""]
    """Of the policy at the last update, in nats."""
    temperature: Float[Array, ""]
    """The weight of that entropy."""
    steps: Int[Array, ""]
    """Imagined steps, over all actors."""
    clipped: Int[Array, ""]
    """Entries of imagined states that were put back into the plausible range."""
    nonfinite: Int[Array, ""]
    """Entries of imagined states, and utilities, that were not finite."""
    saturation: Float[Array, ""]
    """Mean share of its ceiling that the divergence had reached; NaN for a utility without a ceiling."""
    skipped: Int[Array, ""]
    """Updates left out because their gradient was not finite."""

    @classmethod
    def blank(cls) -> "SolveInfo":
        """A report of nothing yet."""
        figure, count = jnp.full((), jnp.nan, jnp.float32), jnp.zeros((), jnp.int32)
        return cls(figure, figure, figure, figure, figure, figure, count, count, count, figure, count)


class Solution(NamedTuple):
    """A policy, what the solver keeps for the next solve, and the report."""

    policy: Policy
    memory: Any
    info: SolveInfo


class Solver(eqx.Module):
    """A way to find a policy that collects much utility, from where the real environment stands now."""

    @property
    def good_for(self) -> int | None:
        """Real steps, within an episode, that its policy is of use for; None if it always is."""
        return None

    def within(self, steps: int) -> "Solver":
        """The same solver where episodes are so long: it looks no farther than that."""
        return self

    @property
    def uses_history(self) -> bool:
        """Whether it learns from D too; the others are not compiled anew when the capacity of D doubles."""
        return False

    @property
    def warm_start(self) -> bool:
        """Whether a solve goes on from the memory given to it; if not, each begins with a new one."""
        return True

    def check(self, mdp: ExplorationMDP) -> None:
        """An `InputError` if this solver cannot solve such an MDP."""

    @abstractmethod
    def init(self, mdp: ExplorationMDP, *, key: PRNGKeyArray) -> Any:
        """What it remembers before the first solve."""

    @abstractmethod
    def run(
        self, mdp: ExplorationMDP, state: Array, history: History | None, memory: Any, *, key: PRNGKeyArray
    ) -> Solution:
        """The solve itself: pure, to be compiled."""

    @property
    def rounds(self) -> int | None:
        """Rounds that `solve` can be told the progress of; None where a solve is one piece. Those that have some have
        `begun`, `round` and `ended`, which `run` consists of."""
        return None

    def begun(
        self, mdp: ExplorationMDP, state: Array, history: History | None, memory: Any, *, key: PRNGKeyArray
    ) -> Any:
        """Where a solve stands before its first round."""
        raise NotImplementedError

    def round(
        self,
        mdp: ExplorationMDP,
        state: Array,
        history: History | None,
        stage: Any,
        number: Int[Array, ""],
        *,
        key: PRNGKeyArray,
    ) -> tuple[Any, Float[Array, ""]]:
        """Where it stands after the round of this number, and the utility per imagined step in it."""
        raise NotImplementedError

    def ended(self, stage: Any, paid: Float[Array, " rounds"]) -> Solution:
        """What came of it, and of what each round was paid."""
        raise NotImplementedError

    def worth(self, memory: Any) -> Worth | None:
        """What states are worth to the policy of a solve that left this memory; None if it keeps no account."""
        return None

    def solve(
        self,
        mdp: ExplorationMDP,
        state: Numbers,
        history: History | None,
        memory: Any = None,
        *,
        key: PRNGKeyArray,
        tell: Callable[[int, float], None] | None = None,
    ) -> Solution:
        """A policy for exploring from `state`, what to pass as `memory` to the next solve, and a report.

        Without a `memory` the solve starts from nothing. Many states are as many places to begin in. With `tell` the
        solve goes on in pieces, if it has `rounds`: how many are done, and the utility per step in the latest.
        """
        self.check(mdp)
        if not self.uses_history:
            history = None
        elif history is None:
            raise InputError(f"{type(self).__name__} learns from D: give a history")
        elif not isinstance(history.size, jax.core.Tracer) and int(history.size) == 0:
            raise InputError("history is empty: append at least one transition before solving")
        entry = mdp.ensemble.state_entry
        given = entry.batch("state", state)
        if self.good_for is not None and given.ndim > len(entry.shape):
            raise InputError(
                f"state has shape {given.shape}, expected one state: {type(self).__name__} plans from there"
            )
        if memory is None or not self.warm_start:
            memory = self.fresh_memory(mdp, key=key)
        key_run = jax.random.split(key)[1]
        if tell is None or self.rounds is None:
            return _run(self, mdp, given, history, memory, key_run)
        stage, done, paid = _begun(self, mdp, given, history, memory, key_run), 0, jnp.zeros(self.rounds)

        def advance(rounds: int) -> bool:
            nonlocal stage, done, paid
            until = min(done + rounds, self.rounds or 0)
            own = (self, mdp, given, history, key_run, jnp.int32(done), jnp.int32(until))
            (stage, paid), done = _go_on(own, (stage, paid)), until
            tell(done, float(paid[done - 1]))
            return done < (self.rounds or 0)

        in_pieces(advance)
        return _ended(self, stage, paid)

    def fresh_memory(self, mdp: ExplorationMDP, *, key: PRNGKeyArray) -> Any:
        """What a `solve` with this key begins with if it is given no memory."""
        return _init(self, mdp, jax.random.split(key)[0])


@compiled
def _init(solver: Solver, mdp: ExplorationMDP, key: PRNGKeyArray) -> Any:
    return solver.init(mdp, key=key)


@compiled
def _run(
    solver: Solver, mdp: ExplorationMDP, state: Array, history: History | None, memory: Any, key: PRNGKeyArray
) -> Solution:
    return solver.run(mdp, state, history, memory, key=key)


@compiled
def _begun(
    solver: Solver, mdp: ExplorationMDP, state: Array, history: History | None, memory: Any, key: PRNGKeyArray
) -> Any:
    return solver.begun(mdp, state, history, memory, key=key)


@compiled(donate="all-except-first")
def _go_on(own: tuple[Any, ...], now: tuple[Any, Float[Array, " rounds"]]) -> tuple[Any, Float[Array, " rounds"]]:
    """Rounds from one number to another. What it goes on from is given up: a replay may be large."""
    solver, mdp, state, history, key, first, until = own

    def each(number: Int[Array, ""], now: tuple[Any, Array]) -> tuple[Any, Array]:
        stage, paid = solver.round(mdp, state, history, now[0], number, key=key)
        return stage, now[1].at[number].set(paid)

    return jax.lax.fori_loop(first, until, each, now)


@compiled
def _ended(solver: Solver, stage: Any, paid: Float[Array, " rounds"]) -> Solution:
    return solver.ended(stage, paid)


def real(mdp: ExplorationMDP, solver: str) -> GaussianEnsemble:
    """The ensemble of an MDP with real states and actions, for solvers that need those."""
    ensemble = mdp.ensemble
    if isinstance(ensemble, GaussianEnsemble) and not ensemble.numbered:
        return ensemble
    raise InputError(
        f"{solver} needs real states and actions, got {ensemble.state_entry} and {ensemble.action_entry}: use icem"
    )


def born(
    mdp: ExplorationMDP, state: Array, history: History | None, actors: int, share: float, *, key: PRNGKeyArray
) -> Array:
    """Where imagined lives begin: in the state given, in any of those given, and a `share` of them anywhere in D."""
    key_start, key_row, key_share = jax.random.split(key, 3)
    start = mdp.start(state, actors, key=key_start)
    if history is None or share == 0:
        return start
    seen = history[jax.random.randint(key_row, (actors,), 0, jnp.maximum(history.size, 1))].state
    return jnp.where(jax.random.bernoulli(key_share, share, (actors, 1)), seen, start)


def imagined(info: SolveInfo, steps: Step) -> SolveInfo:
    """The report with some imagined steps counted in; saturation is that of these steps."""
    return info._replace(
        steps=info.steps + jnp.sum(steps.alive),
        clipped=info.clipped + jnp.sum(steps.info.clipped),
        nonfinite=info.nonfinite + jnp.sum(steps.info.nonfinite),
        saturation=jnp.nanmean(steps.info.saturation),
    )


def per_step(steps: Step) -> Float[Array, ""]:
    """Mean utility of imagined steps."""
    return jnp.sum(steps.reward) / jnp.maximum(jnp.sum(steps.alive), 1)
