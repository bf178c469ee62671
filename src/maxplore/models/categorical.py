"""Members that predict which of finitely many states comes next."""

import equinox as eqx
import jax
import jax.numpy as jnp
from jax.sharding import Mesh
from jaxtyping import Array, Float, Int, PRNGKeyArray

from maxplore import devices
from maxplore.compiling import compiled
from maxplore.entry import Entry, Numbers
from maxplore.errors import InputError
from maxplore.history import History, Transition
from maxplore.models.ensemble import Ensemble, Member, MemberConfig, new_members, one_hot

PAPER = MemberConfig(members=3, depth=4, width=128, activation="tanh")
"""The paper's ensemble for the Chain, and the default."""


class CategoricalEnsemble(Ensemble[Float[Array, "*batch states"]]):
    """N networks from one-hot (s, a) to logits over the next state.

    >>> model = CategoricalEnsemble(states=4, actions=2, key=jax.random.key(0))
    >>> model.predict(jnp.array([0, 1, 2]), jnp.array([0, 0, 1])).shape
    (3, 3, 4)
    """

    members: Member
    states: int = eqx.field(static=True)
    actions: int = eqx.field(static=True)
    config: MemberConfig = eqx.field(static=True)
    mesh: Mesh | None = eqx.field(static=True)

    def __init__(
        self,
        states: int,
        actions: int,
        config: MemberConfig = PAPER,
        *,
        mesh: Mesh | None = None,
        key: PRNGKeyArray,
    ) -> None:
        self.mesh = mesh
        self.members = devices.dealt(mesh, _members(states, actions, config, key=key))
        self.states = states
        self.actions = actions
        self.config = config

    @property
    def state_entry(self) -> Entry:
        return Entry((), self.states)

    @property
    def action_entry(self) -> Entry:
        return Entry((), self.actions)

    def features(self, state: Int[Array, ""], action: Int[Array, ""]) -> Float[Array, " inputs"]:
        return jnp.concatenate([one_hot(state, self.states), one_hot(action, self.actions)])

    def forward(self, member: Member, features: Float[Array, " inputs"]) -> Float[Array, " states"]:
        return member.dynamics(features)

    def noise(self, key: PRNGKeyArray) -> Float[Array, " states"]:
        return jax.random.gumbel(key, (self.states,))

    def realize(
        self, state: Int[Array, ""], prediction: Float[Array, " states"], noise: Float[Array, " states"]
    ) -> Int[Array, ""]:
        drawn = jnp.argmax(prediction + noise)
        return jnp.where(jnp.all(jnp.isfinite(prediction)), drawn, -1).astype(jnp.int32)  # -1: no state at all

    def end_features(self, transition: Transition) -> Float[Array, " end_inputs"]:
        here = self.features(transition.state, transition.action)
        return jnp.concatenate([here, one_hot(transition.next_state, self.states)])

    def loss(self, prediction: Float[Array, " states"], transition: Transition) -> Float[Array, ""]:
        return -jax.nn.log_softmax(prediction)[transition.next_state]

    def measure(
        self, prediction: Float[Array, " states"], transition: Transition
    ) -> tuple[Float[Array, ""], Float[Array, ""]]:
        wrong = jnp.argmax(prediction) != transition.next_state
        return self.loss(prediction, transition), wrong.astype(prediction.dtype)

    def fresh(self, *, key: PRNGKeyArray) -> "CategoricalEnsemble":
        members = _members(self.states, self.actions, self.config, key=key)
        return eqx.tree_at(lambda ensemble: ensemble.members, self, members)

    def adapted(self, history: History) -> "CategoricalEnsemble":
        return self  # one-hot inputs need no statistics

    def logits(
        self, members: Member, states: Int[Array, " pairs"], actions: Int[Array, " pairs"]
    ) -> Float[Array, "members pairs next_states"]:
        """What these members say of pairs that exist. A product with one-hot inputs is a choice of rows: it is free."""

        def one(member: Member) -> Float[Array, "pairs next_states"]:
            first = member.dynamics.layers[0]
            by_state, by_action = first.weight[: self.states], first.weight[self.states :]
            entering = by_state[states] + by_action[actions] + first.bias[None, :]
            return jax.vmap(member.dynamics.after_first)(entering)

        return jax.vmap(one)(members)

    def table(self) -> Float[Array, "members states actions next_states"]:
        """Logits of every pair."""
        states, actions = jnp.divmod(jnp.arange(self.states * self.actions), self.actions)
        logits = self.logits(self.members, states, actions)
        return logits.reshape(self.size, self.states, self.actions, self.states)

    def predict(self, states: Numbers, actions: Numbers) -> Float[Array, "members *batch states"]:
        """Probabilities of the next state by every member, `[members, *batch, states]`."""
        rows = self.state_entry.batch("states", states)
        moves = self.action_entry.batch("actions", actions)
        if rows.shape != moves.shape:
            raise InputError(f"actions has shape {moves.shape}, expected {rows.shape}, the shape of states")
        return _predict(self, rows, moves)


@compiled
def _predict(ensemble: CategoricalEnsemble, states: Array, actions: Array) -> Array:
    logits = ensemble.forecast(states.reshape(-1), actions.reshape(-1))
    return jax.nn.softmax(logits).reshape(ensemble.size, *states.shape, ensemble.states)


def _members(states: int, actions: int, config: MemberConfig, *, key: PRNGKeyArray) -> Member:
    inputs = states + actions
    return new_members(inputs, states, inputs + states, config, key=key)
