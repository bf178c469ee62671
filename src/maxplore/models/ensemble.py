"""What every ensemble can do, whatever its members predict.

The members are one pytree with a leading member axis: the `filter_vmap` of one member's constructor.
"""

from abc import abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Generic, NamedTuple, TypeVar

import equinox as eqx
import jax
import jax.numpy as jnp
from equinox import AbstractVar
from jax.sharding import Mesh
from jaxtyping import Array, Bool, Float, Int, PRNGKeyArray

from maxplore import checks, devices
from maxplore.compiling import compiled
from maxplore.entry import Entry, Numbers
from maxplore.errors import InputError
from maxplore.history import History, Transition
from maxplore.models.mlp import MLP, Activation, activation_named

Prediction = TypeVar("Prediction")

APART_BYTES = 2**20
"""From this size on, members are large: their weights no longer fit a core's cache together."""


@dataclass(frozen=True)
class MemberConfig:
    """How many members, and what their networks look like."""

    members: int = 5
    """N, how many models."""
    depth: int = 2
    """Hidden layers of each."""
    width: int = 200
    """Units of each hidden layer."""
    activation: str | Activation = "swish"
    """A name from `ACTIVATIONS`, or any elementwise function."""
    termination: bool = False
    """Whether members also learn where episodes end."""
    first_gain: float = 1.0
    """Factor on the initial weights of the first layer. Glorot's are small for one-hot inputs, of which only two are
    lit: members begin nearly linear, and agree by accident on pairs never tried. A gain of about 6 mends it."""

    def __post_init__(self) -> None:
        checks.at_least(1, self, "members", "width")
        checks.at_least(0, self, "depth")
        checks.positive(self, "first_gain")
        activation_named(self.activation)


class Member(eqx.Module):
    """One model of the environment: where a step leads, and optionally whether the episode ends there."""

    dynamics: MLP
    termination: MLP | None

    def ends(self, features: Float[Array, " inputs"]) -> Float[Array, ""]:
        """The log-odds that the episode ends with this transition; without a head it never does."""
        if self.termination is None:
            return jnp.asarray(-jnp.inf)
        # Episodes rarely end: an untrained head should not cut imagination short.
        return self.termination(features)[0] - 5.0


class Metrics(NamedTuple):
    """How one member did on one transition, or many."""

    nll: Array
    """Negative log-likelihood of the next state, in nats, in the environment's own units."""
    error: Array
    """Squared error in standard deviations of the delta, averaged over dimensions; or 1 for a wrong guess."""
    termination_nll: Array
    """Negative log-likelihood of the termination flag, in nats; 0 without a termination head."""


class Hands(NamedTuple):
    """Rows dealt out to members like cards: each row's member is uniform; rows of one batch are not independent."""

    rows: Int[Array, "members hands"]
    """What each member is dealt; if rows are few, some of them twice."""
    place: Int[Array, " batch"]
    """Where among all of them each row lies."""


class Chance(NamedTuple):
    """All that one step of a batch of rows leaves to chance. For many steps it is drawn beforehand, all at once: a
    generator inside a loop costs more than many of its matrix products."""

    hands: Hands
    member: Int[Array, " batch"]
    """Drawn uniformly, each on its own: for those who ask all members anyway."""
    noise: Float[Array, "batch numbers"]
    luck: Float[Array, " batch"]
    """From 0 to 1; an episode ends if it is below the chance of that."""


class Ensemble(eqx.Module, Generic[Prediction]):
    """N models of the environment that learned from the same D; where they disagree, D has not been."""

    members: AbstractVar[Member]
    mesh: AbstractVar[Mesh | None]
    """The devices that members are dealt out to (`maxplore.devices.row`); None is one device."""

    @property
    @abstractmethod
    def state_entry(self) -> Entry:
        """What its states look like."""

    @property
    @abstractmethod
    def action_entry(self) -> Entry:
        """What its actions look like."""

    @property
    def size(self) -> int:
        """N, the number of members."""
        return self.members.dynamics.layers[0].bias.shape[0]

    # One example ---------------------------------------------------------------------------------

    @abstractmethod
    def features(self, state: Array, action: Array) -> Float[Array, " inputs"]:
        """What a member's network sees of one state and action."""

    @abstractmethod
    def forward(self, member: Member, features: Float[Array, " inputs"]) -> Prediction:
        """One member's distribution of the next state, in the ensemble's internal scale."""

    @abstractmethod
    def noise(self, key: PRNGKeyArray) -> Float[Array, " numbers"]:
        """What it takes to draw one next state from a prediction."""

    @abstractmethod
    def realize(self, state: Array, prediction: Prediction, noise: Float[Array, " numbers"]) -> Array:
        """The next state that this noise draws from one prediction."""

    @abstractmethod
    def end_features(self, transition: Transition) -> Float[Array, " end_inputs"]:
        """What a member's termination head sees of one transition."""

    @abstractmethod
    def loss(self, prediction: Prediction, transition: Transition) -> Float[Array, ""]:
        """What `fit` minimises: the negative log-likelihood per dimension, in the internal scale."""

    @abstractmethod
    def measure(self, prediction: Prediction, transition: Transition) -> tuple[Float[Array, ""], Float[Array, ""]]:
        """Negative log-likelihood and error of one prediction, as `Metrics` has them."""

    # The whole ensemble --------------------------------------------------------------------------

    @abstractmethod
    def fresh(self, *, key: PRNGKeyArray) -> "Ensemble[Prediction]":
        """The same architecture with newly drawn members."""

    @abstractmethod
    def adapted(self, history: History) -> "Ensemble[Prediction]":
        """The same predictions, expressed in the statistics of `history`."""

    @abstractmethod
    def predict(self, states: Numbers, actions: Numbers) -> Any:
        """Every member's distribution of the next state, in the environment's own units: `[members, batch, ...]`."""

    def forecast(self, states: Array, actions: Array, *, apart: tuple[Member, ...] | None = None) -> Prediction:
        """Every member's prediction for every row, `[members, batch, ...]`, in the internal scale.

        Loops that forecast again and again with large members are faster with the members `apart`.
        """
        features = jax.vmap(self.features)(states, actions)
        if apart is None:
            return self._everyone(
                lambda members, own, features: jax.vmap(own._over_rows, in_axes=(0, None))(members, features),
                self.members,
                features,
            )
        predictions = [self._over_rows(member, features) for member in apart]
        return jax.tree.map(lambda *each: jnp.stack(each), *predictions)

    def apart(self) -> tuple[Member, ...] | None:
        """The members as separate pytrees if they are large: products of separate matrices run faster on a CPU.

        Small ones stay together (None), where one batched product spares the overhead of many; so do those that are
        dealt out to devices.
        """
        if self.member_bytes < APART_BYTES or self.mesh is not None:
            return None
        return tuple(jax.tree.map(lambda x, i=i: x[i], self.members) for i in range(self.size))

    @property
    def member_bytes(self) -> int:
        """The memory that one member's parameters take."""
        return sum(x.nbytes for x in jax.tree.leaves(self.members)) // self.size

    def sample(self, states: Array, actions: Array, *, key: PRNGKeyArray) -> tuple[Array, Bool[Array, " batch"]]:
        """Next states, each from a member drawn uniformly for its row, and whether the episode ends there."""
        chance = self.chance(states.shape[0], key=key)
        own, member = self.dealt(states, actions, chance.hands)
        next_states = self.realize_rows(states, own, chance.noise)
        return next_states, self.ends(states, actions, next_states, member, chance.luck)

    def chance(self, batch: int, *, key: PRNGKeyArray) -> "Chance":
        """All that one step of so many rows leaves to chance."""
        key_member, key_state, key_end = jax.random.split(key, 3)
        hands = -(-batch // self.size)
        deck = jax.random.permutation(key_member, hands * self.size)
        # Row r lies wherever deck % batch == r; the place where deck == r is the one that counts.
        return Chance(
            Hands((deck % batch).reshape(self.size, hands), jnp.argsort(deck)[:batch]),
            jax.random.randint(key_member, (batch,), 0, self.size),
            jax.vmap(self.noise)(jax.random.split(key_state, batch)),
            jax.random.uniform(key_end, (batch,)),
        )

    def dealt(self, states: Array, actions: Array, hands: "Hands") -> tuple[Prediction, Int[Array, " batch"]]:
        """For each row, the prediction of the member that it was dealt to, and which member that is.

        No member computes a row that is not its own: N times cheaper than `forecast` and a choice.
        """
        features = jax.vmap(self.features)(states, actions)[hands.rows]
        predictions = self._everyone(lambda dealt, own: jax.vmap(own._over_rows)(*dealt), (self.members, features))
        own = jax.tree.map(lambda x: x.reshape(-1, *x.shape[2:])[hands.place], predictions)
        return own, hands.place // hands.rows.shape[1]

    def realize_rows(self, states: Array, own: Prediction, noise: Float[Array, "batch numbers"]) -> Array:
        """A next state for each row, drawn from its own prediction."""
        return jax.vmap(self.realize)(states, own, noise)

    def ends(
        self,
        states: Array,
        actions: Array,
        next_states: Array,
        member: Int[Array, " batch"],
        luck: Float[Array, " batch"],
    ) -> Bool[Array, " batch"]:
        """Whether each row's episode ends with its transition, as what its member thinks and its luck will have it."""
        return luck < self.end_chance(states, actions, next_states, member)

    def end_chance(
        self, states: Array, actions: Array, next_states: Array, member: Int[Array, " batch"]
    ) -> Float[Array, " batch"]:
        """How likely each row's episode ends with its transition, as its member thinks."""
        never = jnp.zeros(states.shape[0], bool)
        if self.members.termination is None:
            return jnp.zeros(states.shape[0])
        features = jax.vmap(self.end_features)(Transition(states, actions, next_states, never, never))
        over_rows = jax.vmap(lambda m, x: m.ends(x), in_axes=(None, 0))
        log_odds = self._everyone(
            lambda members, _, features: jax.vmap(over_rows, in_axes=(0, None))(members, features),
            self.members,
            features,
        )
        return jax.nn.sigmoid(jnp.take_along_axis(log_odds, member[None, :], axis=0)[0])

    @property
    def common(self) -> "Ensemble[Prediction]":
        """All of it but the members: what every device has to know, whichever members it holds."""
        return eqx.tree_at(lambda ensemble: ensemble.members, self, None)

    def _over_rows(self, member: Member, features: Float[Array, "rows inputs"]) -> Prediction:
        return jax.vmap(self.forward, in_axes=(None, 0))(member, features)

    def _everyone(self, function: Callable[..., Any], dealt: Any, *shared: Any) -> Any:
        """`function(dealt, self.common, *shared)` of every member, or of what each has of its own, brought together."""
        return devices.together(self.mesh, devices.each(self.mesh, function, dealt, self.common, *shared))

    def check_fits(self, history: History) -> None:
        """An `InputError` if `history` holds states or actions of another kind."""
        for name, own, other in (
            ("states", self.state_entry, history.state_entry),
            ("actions", self.action_entry, history.action_entry),
        ):
            if own != other:
                raise InputError(f"the history's {name} are {other}, expected {own}, those of the ensemble")


def one_hot(number: Int[Array, ""], count: int) -> Float[Array, " count"]:
    """One-hot; NaN for a number that does not exist, so that it cannot pass for anything."""
    return jnp.where((number >= 0) & (number < count), jax.nn.one_hot(number, count), jnp.nan)


@compiled
def new_members(inputs: int, outputs: int, end_inputs: int, config: MemberConfig, *, key: PRNGKeyArray) -> Member:
    """N independently initialised members as one pytree.

    Compiled as a whole, and once: dozens of tiny initialisation kernels would take longer than the rest of start-up.
    """

    def build(key: PRNGKeyArray) -> Member:
        key_dynamics, key_termination = jax.random.split(key)
        depth, width, activation = config.depth, config.width, config.activation
        dynamics = MLP(inputs, outputs, depth=depth, width=width, activation=activation, key=key_dynamics)
        if config.first_gain != 1.0:
            dynamics = eqx.tree_at(
                lambda mlp: mlp.layers[0].weight, dynamics, replace_fn=lambda w: config.first_gain * w
            )
        if not config.termination:
            return Member(dynamics, None)
        return Member(dynamics, MLP(end_inputs, 1, depth=2, width=64, activation="swish", key=key_termination))

    return eqx.filter_vmap(build)(jax.random.split(key, config.members))


def member_loss(ensemble: Ensemble[Any], member: Member, transition: Transition) -> Float[Array, ""]:
    """What one member pays for one transition in training."""
    prediction = ensemble.forward(member, ensemble.features(transition.state, transition.action))
    return ensemble.loss(prediction, transition) + _termination_nll(ensemble, member, transition)


def member_metrics(ensemble: Ensemble[Any], member: Member, transition: Transition) -> Metrics:
    prediction = ensemble.forward(member, ensemble.features(transition.state, transition.action))
    return Metrics(*ensemble.measure(prediction, transition), _termination_nll(ensemble, member, transition))


def _termination_nll(ensemble: Ensemble[Any], member: Member, transition: Transition) -> Float[Array, ""]:
    if member.termination is None:
        return jnp.zeros(())
    log_odds = member.ends(ensemble.end_features(transition))
    return jax.nn.softplus(jnp.where(transition.terminated, -log_odds, log_odds))
