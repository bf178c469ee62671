"""Members that predict a Gaussian over the next state of a continuous environment.

Internally everything is in normalised-delta space: the delta of the state, with mean 0 and
standard deviation 1 over D. Only sampled states and `predict` leave it.
"""

import math
from dataclasses import dataclass
from typing import NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
from jax.sharding import Mesh
from jaxtyping import Array, Bool, Float, PRNGKeyArray, Shaped

from maxplore import checks, devices
from maxplore.compiling import compiled
from maxplore.entry import Entry, Numbers
from maxplore.errors import InputError
from maxplore.history import History, Transition
from maxplore.models.ensemble import Ensemble, Member, MemberConfig, new_members, one_hot
from maxplore.models.mlp import Layer
from maxplore.normalizer import Normalizer


class Gaussian(NamedTuple):
    """A diagonal Gaussian, or a batch of them."""

    mean: Float[Array, "*batch dims"]
    variance: Float[Array, "*batch dims"]


@dataclass(frozen=True)
class GaussianConfig(MemberConfig):
    """The architecture of a Gaussian ensemble."""

    log_variance: tuple[float, float] = (-10.0, 0.5)
    """Bounds of the predicted log-variance in normalised-delta space (the authors' code: -5, -1)."""

    initial_log_variance: float | None = 0.0
    """Where the predicted log-variance begins (0: all of the data's variance), as far as the bounds allow. None: in the
    middle of the bounds, as in the authors' code, which is far too sure of itself when the bounds are wide."""

    def __post_init__(self) -> None:
        MemberConfig.__post_init__(self)
        checks.bounds(self, "log_variance")


DEFAULT = GaussianConfig()

PAPER = GaussianConfig(members=32, depth=4, width=512, log_variance=(-5.0, -1.0), initial_log_variance=None)
"""The paper's ensemble; the bounds are those of the authors' code."""


class GaussianEnsemble(Ensemble[Gaussian]):
    """N networks from normalised (s, a) to a Gaussian over the normalised delta of the state.

    >>> model = GaussianEnsemble(state_dims=3, action_dims=1, key=jax.random.key(0))
    >>> mean, variance = model.predict(jnp.zeros((7, 3)), jnp.zeros((7, 1)))
    >>> mean.shape
    (5, 7, 3)
    """

    members: Member
    state: Normalizer
    action: Normalizer
    """Of numbered actions, the identity: they are seen one-hot."""
    delta: Normalizer
    fitted: Bool[Array, ""]
    """Whether the members have learned anything that a change of statistics must preserve."""
    numbered: bool = eqx.field(static=True)
    """Whether actions are numbers from 0 on, and not real vectors."""
    config: GaussianConfig = eqx.field(static=True)
    mesh: Mesh | None = eqx.field(static=True)

    def __init__(
        self,
        state_dims: int,
        action_dims: int,
        config: GaussianConfig = DEFAULT,
        *,
        numbered: bool = False,
        mesh: Mesh | None = None,
        key: PRNGKeyArray,
    ) -> None:
        """With `numbered`, `action_dims` is the number of discrete actions; with a `mesh`, members are dealt out to its
        devices."""
        self.numbered = numbered
        self.mesh = mesh
        self.members = devices.dealt(mesh, _members(state_dims, action_dims, config, key=key))
        self.state = Normalizer.identity(state_dims)
        self.action = Normalizer.identity(action_dims)
        self.delta = Normalizer.identity(state_dims)
        self.fitted = jnp.zeros((), bool)
        self.config = config

    @property
    def state_entry(self) -> Entry:
        return Entry((self.state.mean.size,))

    @property
    def action_entry(self) -> Entry:
        count = self.action.mean.size
        return Entry((), count) if self.numbered else Entry((count,))

    def features(self, state: Float[Array, " dims"], action: Shaped[Array, "*action"]) -> Float[Array, " inputs"]:
        seen = one_hot(action, self.action.mean.size) if self.numbered else self.action.normalize(action)
        return jnp.concatenate([self.state.normalize(state), seen])

    def forward(self, member: Member, features: Float[Array, " inputs"]) -> Gaussian:
        mean, raw = jnp.split(member.dynamics(features), 2)
        low, high = self.config.log_variance
        variance = jnp.exp(low + (high - low) * jax.nn.sigmoid(raw))
        # Of a dimension that never moved there is nothing to say, and nothing to disagree about.
        return Gaussian(jnp.where(self.delta.varies, mean, 0.0), jnp.where(self.delta.varies, variance, 1.0))

    def noise(self, key: PRNGKeyArray) -> Float[Array, " dims"]:
        return jax.random.normal(key, self.delta.mean.shape)

    def realize(
        self, state: Float[Array, " dims"], prediction: Gaussian, noise: Float[Array, " dims"]
    ) -> Float[Array, " dims"]:
        return state + self.delta.denormalize(prediction.mean + jnp.sqrt(prediction.variance) * noise)

    def normalized_delta(
        self, state: Float[Array, " dims"], next_state: Float[Array, " dims"]
    ) -> Float[Array, " dims"]:
        """The change of state as members see it."""
        return self.delta.normalize(next_state - state)

    def end_features(self, transition: Transition) -> Float[Array, " end_inputs"]:
        here = self.features(transition.state, transition.action)
        return jnp.concatenate([here, self.state.normalize(transition.next_state)])

    def loss(self, prediction: Gaussian, transition: Transition) -> Float[Array, ""]:
        return jnp.sum(self._nll(prediction, transition)) / jnp.maximum(jnp.sum(self.delta.varies), 1)

    def measure(self, prediction: Gaussian, transition: Transition) -> tuple[Float[Array, ""], Float[Array, ""]]:
        error = self.normalized_delta(transition.state, transition.next_state) - prediction.mean
        nll = self._nll(prediction, transition) + jnp.where(self.delta.varies, jnp.log(self.delta.scale), 0.0)
        error = jnp.where(self.delta.varies, error, 0.0)
        return jnp.sum(nll), jnp.sum(error**2) / jnp.maximum(jnp.sum(self.delta.varies), 1)

    def fresh(self, *, key: PRNGKeyArray) -> "GaussianEnsemble":
        members = _members(self.state.mean.size, self.action.mean.size, self.config, key=key)
        return eqx.tree_at(lambda e: (e.members, e.fitted), self, (members, jnp.zeros((), bool)))

    def adapted(self, history: History) -> "GaussianEnsemble":
        rows, filled = history.transitions, history.filled
        state = Normalizer.of(rows.state, filled)
        action = self.action if self.numbered else Normalizer.of(rows.action, filled)
        delta = Normalizer.of(rows.next_state - rows.state, filled)
        folded = jax.vmap(lambda member: self._refolded(member, state, action, delta))(self.members)
        # Newly drawn weights mean nothing yet: they stay as drawn.
        members = jax.tree.map(lambda new, old: jnp.where(self.fitted, new, old), folded, self.members)
        return eqx.tree_at(
            lambda e: (e.members, e.state, e.action, e.delta, e.fitted),
            self,
            (members, state, action, delta, jnp.ones((), bool)),
        )

    def predict(self, states: Numbers, actions: Numbers) -> Gaussian:
        """Mean and variance of the next state by every member, `[members, *batch, dims]`, in its own units."""
        rows = self.state_entry.batch("states", states)
        moves = self.action_entry.batch("actions", actions)
        expected = (*rows.shape[:-1], *self.action_entry.shape)
        if moves.shape != expected:
            raise InputError(f"actions has shape {moves.shape}, expected {expected}")
        return _predict(self, rows, moves)

    def _nll(self, prediction: Gaussian, transition: Transition) -> Float[Array, " dims"]:
        """Negative log-likelihood of each dimension in normalised-delta space; 0 for one that never moved."""
        error = self.normalized_delta(transition.state, transition.next_state) - prediction.mean
        nll = 0.5 * (error**2 / prediction.variance + jnp.log(2 * jnp.pi * prediction.variance))
        return jnp.where(self.delta.varies, nll, 0.0)

    def _refolded(self, member: Member, state: Normalizer, action: Normalizer, delta: Normalizer) -> Member:
        """One member that says in the new statistics what it said in the old ones.

        The mean is kept exactly. The log-variance is bounded, so a shift of it cannot be folded in: its bias is
        moved, which keeps the variance roughly (exactly where the bias alone sets it). Training does the rest.
        """
        layers = list(member.dynamics.layers)
        layers[0] = new_inputs(layers[0], [(self.state, state), (self.action, action)])
        layers[-1] = _new_outputs(layers[-1], self.delta, delta, self.config.log_variance)
        termination = member.termination
        if termination is not None:
            pairs = [(self.state, state), (self.action, action), (self.state, state)]
            first = new_inputs(termination.layers[0], pairs)
            termination = eqx.tree_at(lambda net: net.layers[0], termination, first)
        return Member(eqx.tree_at(lambda net: net.layers, member.dynamics, tuple(layers)), termination)


@compiled
def _predict(ensemble: GaussianEnsemble, states: Array, actions: Array) -> Gaussian:
    shape = (ensemble.size, *states.shape)
    flat = states.reshape(-1, states.shape[-1])
    mean, variance = ensemble.forecast(flat, actions.reshape(-1, *ensemble.action_entry.shape))
    per_row = jax.vmap(jax.vmap(lambda state, mean: state + ensemble.delta.denormalize(mean)), in_axes=(None, 0))
    scaled = jax.vmap(jax.vmap(lambda variance: ensemble.delta.spread**2 * variance))(variance)
    return Gaussian(per_row(flat, mean).reshape(shape), scaled.reshape(shape))


def _members(state_dims: int, action_dims: int, config: GaussianConfig, *, key: PRNGKeyArray) -> Member:
    inputs = state_dims + action_dims
    members = new_members(inputs, 2 * state_dims, inputs + state_dims, config, key=key)
    if config.initial_log_variance is None:
        return members
    low, high = config.log_variance
    level = min(max((config.initial_log_variance - low) / (high - low), 0.02), 0.98)
    bias = members.dynamics.layers[-1].bias.at[:, state_dims:].set(math.log(level / (1 - level)))
    return eqx.tree_at(lambda m: m.dynamics.layers[-1].bias, members, bias)


def new_inputs(layer: Layer, changes: list[tuple[Normalizer, Normalizer]]) -> Layer:
    """The layer that gives for newly normalised inputs what it gave for the old ones: W (x' s' + m' - m) / s."""
    ratio = jnp.concatenate([new.scale / _meant(old, new) for old, new in changes])
    shift = jnp.concatenate([(new.mean - old.mean) / _meant(old, new) for old, new in changes])
    return Layer(ratio[:, None] * layer.weight, layer.bias + shift @ layer.weight)


def _meant(old: Normalizer, new: Normalizer) -> Float[Array, " dims"]:
    """The old scale; the new one for a dimension that had not varied, whose scale 1 was only a placeholder."""
    return jnp.where(old.varies, old.scale, new.scale)


def _new_outputs(layer: Layer, old: Normalizer, new: Normalizer, bounds: tuple[float, float]) -> Layer:
    ratio, shift = _meant(old, new) / new.scale, (old.mean - new.mean) / new.scale
    weight_mean, weight_raw = jnp.split(layer.weight, 2, axis=1)
    bias_mean, bias_raw = jnp.split(layer.bias, 2)
    low, high = bounds
    level = jax.nn.sigmoid(bias_raw) + 2 * jnp.log(ratio) / (high - low)
    moved = jax.scipy.special.logit(jnp.clip(level, 1e-3, 1 - 1e-3))
    return Layer(
        jnp.concatenate([weight_mean * ratio[None, :], weight_raw], axis=1),
        jnp.concatenate([bias_mean * ratio + shift, moved]),
    )
