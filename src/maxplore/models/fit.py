"""Training an ensemble on D: one `fit` for every kind of member."""

from dataclasses import dataclass
from typing import Any, Generic, NamedTuple, TypeVar

import equinox as eqx
import jax
import jax.core
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Int, PRNGKeyArray

from maxplore import checks, devices
from maxplore.compiling import compiled
from maxplore.errors import InputError
from maxplore.history import History, held_out, member_bags, shuffled
from maxplore.models.adam import Moments, adam
from maxplore.models.ensemble import Ensemble, Member, Metrics, member_loss, member_metrics
from maxplore.pieces import Tell, in_pieces

AnyEnsemble = TypeVar("AnyEnsemble", bound=Ensemble[Any])

GROUP_BYTES = 2**24
"""Parameters of the members that train side by side."""


@dataclass(frozen=True)
class FitConfig:
    """How an ensemble learns from D."""

    epochs: int = 50
    """Passes over D (at most, with early stopping)."""
    steps: int | None = None
    """Gradient steps in all, in place of `epochs`; the epochs then follow from the size of D."""
    most_steps: int | None = None
    """Gradient steps at the most: `epochs` then count for a small D, this for a large one."""
    batch_size: int = 256
    """Transitions in a minibatch of each member. An incomplete last batch is dropped unless it is the only one."""
    learning_rate: float = 1e-3
    """Adam's."""
    cooling: float = 0.0
    """Share of the gradient steps, the last ones, over which the learning rate falls to 0. It spares many steps where
    the model has to be exact; with early stopping it is of little use."""
    clip: float = 5.0
    """Gradient values are clipped to plus or minus this."""
    weight_decay: float = 0.0
    """L2 penalty, added to the gradient."""
    from_scratch: bool = True
    """Newly drawn members, as in the paper, or the ones given (a warm start)."""
    bootstrap: bool = False
    """Each member learns from its own resample of D with replacement, or all from all of D."""
    own_share: float = 1.0
    """Share of D that each member learns from, in stretches drawn for it. Members that share all of D share most of
    their errors, and agree on them; those with data of their own disagree about as much as they err."""
    held_out: float = 0.0
    """Share of D that is never trained on, for an honest report."""
    patience: int | None = None
    """Stop when no member improved on the held-out share for so many epochs; each keeps its best state. The held-out
    figures of the report are then those of the best epoch, a little on the bright side."""
    report_rows: int = 2048
    """Transitions, at most, that the report is measured on."""

    def __post_init__(self) -> None:
        checks.at_least(1, self, "epochs", "batch_size", "report_rows")
        checks.positive(self, "learning_rate", "clip")
        checks.not_negative(self, "weight_decay")
        checks.share(self, "cooling")
        for name in ("steps", "most_steps"):
            if getattr(self, name) is not None and getattr(self, name) < 1:
                raise InputError(f"{name} is {getattr(self, name)}, expected at least 1, or None to count epochs")
        if not 0 < self.own_share <= 1:
            raise InputError(f"own_share is {self.own_share}, expected a share above 0, up to 1")
        if self.bootstrap and self.own_share < 1:
            raise InputError(f"bootstrap is given with own_share {self.own_share}, expected one of the two")
        if not 0 <= self.held_out < 1:
            raise InputError(f"held_out is {self.held_out}, expected a share from 0 up to, but not including, 1")
        if self.patience is not None and (self.patience < 1 or self.held_out == 0):
            raise InputError(
                f"patience is {self.patience} with held_out {self.held_out}: early stopping needs patience of "
                "at least 1 and a held-out share such as 0.1"
            )


class FitReport(NamedTuple):
    """What came of a fit. Figures are per member; with nothing held out, the held-out ones are NaN."""

    epochs: Int[Array, ""]
    steps: Int[Array, ""]
    rows: Int[Array, ""]
    """Transitions trained on."""
    held_out_rows: Int[Array, ""]
    train: Metrics
    held_out: Metrics


class Fitted(eqx.Module, Generic[AnyEnsemble]):
    """The trained ensemble, Adam's memory for a next warm start, and the report."""

    ensemble: AnyEnsemble
    moments: Moments
    report: FitReport


class _Progress(NamedTuple):
    members: Member
    moments: Moments
    best: Member
    best_nll: Float[Array, " members"]
    stale: Int[Array, ""]
    epoch: Int[Array, ""]
    steps: Int[Array, ""]
    key: PRNGKeyArray


def fit(
    ensemble: AnyEnsemble,
    history: History,
    config: FitConfig = FitConfig(),
    *,
    key: PRNGKeyArray,
    moments: Moments | None = None,
    tell: Tell | None = None,
) -> Fitted[AnyEnsemble]:
    """Train every member on D by maximum likelihood, from scratch or from where it stands.

    The statistics for normalisation are those of D; a warm-started member has their change folded into
    its weights, so that it starts from the same predictions. `moments`, Adam's memory of an earlier fit, count for a
    warm start only. Compiles once for a capacity of D. With `tell` it goes on in pieces, and tells how far it is.
    """
    ensemble.check_fits(history)
    if not isinstance(history.size, jax.core.Tracer) and int(history.size) == 0:
        raise InputError("history is empty: append at least one transition before fitting")
    if tell is None:
        return _fit(ensemble, history, config, key, moments)
    tell("fit", 0, 0, None)
    setup, now = _begin(ensemble, history, config, key, moments)

    def advance(epochs: int) -> bool:
        nonlocal now
        now, more = _go_on(setup, history, config, now, jnp.int32(epochs))
        tell("fit", int(now.steps), int(setup.total), None)
        return bool(more)

    in_pieces(advance)
    return _end(setup, history, config, now)


@compiled
def _fit(
    ensemble: AnyEnsemble, history: History, config: FitConfig, key: PRNGKeyArray, moments: Moments | None
) -> Fitted[AnyEnsemble]:
    setup, now = _begun(ensemble, history, config, key, moments)
    end = jax.lax.while_loop(
        lambda now: _unfinished(setup, config, now), lambda now: _epoch(setup, history, config, now), now
    )
    return _ended(setup, history, config, end)


class _Setup(NamedTuple):
    """What stays as it is from epoch to epoch."""

    ensemble: Ensemble[Any]
    aside: Bool[Array, " capacity"]
    aside_rows: Int[Array, " places"]
    aside_count: Int[Array, ""]
    bags: Int[Array, "members places"]
    rows: Int[Array, ""]
    """Of D that are trained on."""
    steps_per_epoch: Int[Array, ""]
    total: Int[Array, ""]
    key_train: PRNGKeyArray


def _begun(
    ensemble: Ensemble[Any], history: History, config: FitConfig, key: PRNGKeyArray, moments: Moments | None
) -> tuple[_Setup, _Progress]:
    key_init, key_bags, key_epochs, key_report = jax.random.split(key, 4)
    if config.from_scratch:
        ensemble = ensemble.fresh(key=key_init)  # pyright: ignore[reportAssignmentType]  (its own kind)
    ensemble = ensemble.adapted(history)  # pyright: ignore[reportAssignmentType]
    ensemble = eqx.tree_at(lambda e: e.members, ensemble, devices.dealt(ensemble.mesh, ensemble.members))

    aside = held_out(history, config.held_out)
    # A D so small that everything would be held out is trained on whole.
    aside = aside & jnp.any(history.filled & ~aside)
    bags, count = member_bags(
        history,
        ensemble.size,
        key=key_bags,
        chosen=history.filled & ~aside,
        bootstrap=config.bootstrap,
        own_share=config.own_share,
    )
    key_train, key_aside = jax.random.split(key_report)
    aside_rows, aside_count = _random_rows(history, aside, config, key=key_aside)
    steps_per_epoch = jnp.maximum(count // config.batch_size, 1)
    total = config.epochs * steps_per_epoch if config.steps is None else jnp.int32(config.steps)
    total = total if config.most_steps is None else jnp.minimum(total, config.most_steps)
    members = ensemble.members
    start = _Progress(
        members,
        Moments.zero(members) if moments is None or config.from_scratch else moments,
        members,
        jnp.full(ensemble.size, jnp.inf),
        jnp.zeros((), jnp.int32),
        jnp.zeros((), jnp.int32),
        jnp.zeros((), jnp.int32),
        key_epochs,
    )
    setup = _Setup(ensemble, aside, aside_rows, aside_count, bags, count, steps_per_epoch, total, key_train)
    return setup, start


def _epoch(setup: _Setup, history: History, config: FitConfig, now: _Progress) -> _Progress:
    """One pass over D, or what is left of the steps."""
    ensemble, count, total = setup.ensemble, setup.rows, setup.total
    limits = [limit for limit in (config.steps, config.most_steps) if limit is not None]
    needed = min(limits) * config.batch_size if limits else None
    key_shuffle, key_next = jax.random.split(now.key)
    order = shuffled(setup.bags, count, key=key_shuffle, first=needed)
    steps = jnp.minimum(setup.steps_per_epoch, total - now.steps)
    members, moments = train(
        ensemble,
        history,
        config,
        now.members,
        now.moments,
        order,
        count,
        steps,
        left=total - now.steps,
        total=total,
    )
    best, best_nll, stale = members, now.best_nll, jnp.zeros((), jnp.int32)
    if config.patience is not None:
        found = _measure(ensemble, members, history, setup.aside_rows, setup.aside_count, config)
        nll = found.nll + found.termination_nll
        better = nll < now.best_nll
        best = jax.tree.map(
            lambda new, old: jnp.where(better.reshape(-1, *[1] * (new.ndim - 1)), new, old), members, now.best
        )
        best_nll = jnp.minimum(nll, now.best_nll)
        stale = jnp.where(jnp.any(better) | (setup.aside_count == 0), 0, now.stale + 1)
    return _Progress(members, moments, best, best_nll, stale, now.epoch + 1, now.steps + steps, key_next)


def _unfinished(setup: _Setup, config: FitConfig, now: _Progress) -> Bool[Array, ""]:
    patient = True if config.patience is None else now.stale < config.patience
    return (now.steps < setup.total) & patient


def _ended(setup: _Setup, history: History, config: FitConfig, end: _Progress) -> Fitted[Any]:
    ensemble, aside_count, count = setup.ensemble, setup.aside_count, setup.rows
    # With nothing held out there is no best state but the last.
    members = jax.tree.map(lambda best, last: jnp.where(aside_count > 0, best, last), end.best, end.members)
    members = devices.dealt(ensemble.mesh, members)
    ensemble = eqx.tree_at(lambda e: e.members, ensemble, members)

    trained, _ = _random_rows(history, history.filled & ~setup.aside, config, key=setup.key_train)
    report = FitReport(
        end.epoch,
        end.steps,
        count,
        aside_count,
        _measure(ensemble, members, history, trained, count, config),
        _measure(ensemble, members, history, setup.aside_rows, aside_count, config),
    )
    return Fitted(ensemble, end.moments, report)


_begin, _end = compiled(_begun), compiled(_ended)


@compiled
def _go_on(
    setup: _Setup, history: History, config: FitConfig, now: _Progress, epochs: Int[Array, ""]
) -> tuple[_Progress, Bool[Array, ""]]:
    """So many epochs at the most, and whether there are more to come."""
    until = now.epoch + epochs
    now = jax.lax.while_loop(
        lambda now: _unfinished(setup, config, now) & (now.epoch < until),
        lambda now: _epoch(setup, history, config, now),
        now,
    )
    return now, _unfinished(setup, config, now)


_Shared = tuple[Ensemble[Any], History, Array, Array, Array, Array | None, Array | None]
"""What all members train with: all but the members, D, Adam's steps so far, rows, steps, steps left and in all."""


def train(
    ensemble: Ensemble[Any],
    history: History,
    config: FitConfig,
    members: Member,
    moments: Moments,
    order: Int[Array, "members places"],
    count: Int[Array, ""],
    steps: Int[Array, ""],
    *,
    left: Int[Array, ""] | None = None,
    total: Int[Array, ""] | None = None,
) -> tuple[Member, Moments]:
    """`steps` gradient steps of every member, each on its own minibatches: the first `count` rows of its `order`.

    With `cooling` it is told how many steps are `left` of the `total`.
    """
    size = config.batch_size

    def train_member(own: tuple[Member, Any, Any, Array], shared: _Shared) -> tuple[Member, Any, Any]:
        (member, first, second, order), (ensemble, history, done, count, steps, left, total) = own, shared
        order = jnp.pad(order, (0, size))

        def rate(k: Int[Array, ""]) -> Any:
            if config.cooling == 0 or left is None or total is None:
                return config.learning_rate
            return config.learning_rate * jnp.minimum(1.0, (left - k) / (config.cooling * total))

        def step(k: Int[Array, ""], carry: tuple[Member, Moments]) -> tuple[Member, Moments]:
            member, moments = carry
            batch = history[jax.lax.dynamic_slice_in_dim(order, k * size, size)]
            weight = (k * size + jnp.arange(size) < count).astype(jnp.float32)

            def loss(member: Member) -> Float[Array, ""]:
                losses = jax.vmap(lambda transition: member_loss(ensemble, member, transition))(batch)
                return jnp.sum(losses * weight) / jnp.sum(weight)

            return adam(
                member,
                jax.grad(loss)(member),
                moments,
                learning_rate=rate(k),
                clip=config.clip,
                weight_decay=config.weight_decay,
            )

        member, now = jax.lax.fori_loop(0, steps, step, (member, Moments(done, first, second)))
        return member, now.first, now.second

    # Members outside, steps inside, a few members at a time: what they need stays in the cache from step to step.
    group = max(GROUP_BYTES // ensemble.member_bytes, 1)

    def train_all(each: tuple[Member, Any, Any, Array], shared: _Shared) -> tuple[Member, Any, Any]:
        if group >= each[-1].shape[0]:
            return jax.vmap(train_member, in_axes=(0, None))(each, shared)
        return jax.lax.map(lambda own: train_member(own, shared), each, batch_size=group)

    each = (members, moments.first, moments.second, order)
    shared = (ensemble.common, history, moments.steps, count, steps, left, total)
    members, first, second = devices.each(ensemble.mesh, train_all, each, shared)
    return members, Moments(moments.steps + steps, first, second)


def _random_rows(
    history: History, chosen: Bool[Array, " capacity"], config: FitConfig, *, key: PRNGKeyArray
) -> tuple[Int[Array, " places"], Int[Array, ""]]:
    """As many of the chosen rows as are reported on, drawn at random to speak for all; and how many all are."""
    key_bag, key_order = jax.random.split(key)
    bag, count = member_bags(history, 1, key=key_bag, chosen=chosen)
    return shuffled(bag, count, key=key_order, first=config.report_rows)[0], count


def _measure(
    ensemble: Ensemble,
    members: Member,
    history: History,
    rows: Int[Array, " places"],
    count: Int[Array, ""],
    config: FitConfig,
) -> Metrics:
    """Each member's mean metrics over the first `count` of `rows`, at most `report_rows` of them."""
    count = jnp.minimum(count, config.report_rows)
    size = min(config.batch_size, history.capacity)
    padded = jnp.pad(rows, (0, size))

    def measured(
        members: Member, ensemble: Ensemble[Any], history: History, padded: Array, count: Int[Array, ""]
    ) -> Metrics:
        def add(block: Int[Array, ""], total: Metrics) -> Metrics:
            places = block * size + jnp.arange(size)
            batch = history[jax.lax.dynamic_slice_in_dim(padded, block * size, size)]
            over_rows = jax.vmap(lambda m, t: member_metrics(ensemble, m, t), in_axes=(None, 0))
            metrics = jax.vmap(over_rows, in_axes=(0, None))(members, batch)
            counted = (places < count)[None, :]
            return jax.tree.map(lambda sum_, x: sum_ + jnp.sum(jnp.where(counted, x, 0.0), axis=1), total, metrics)

        zero = jnp.zeros(members.dynamics.layers[0].bias.shape[0])
        total = jax.lax.fori_loop(0, -(-count // size), add, Metrics(zero, zero, zero))
        return jax.tree.map(lambda x: x / count, total)

    shared = (ensemble.common, history, padded, count)
    return devices.together(ensemble.mesh, devices.each(ensemble.mesh, measured, members, *shared))
