"""An analytic policy gradient: the utility of short imagined windows, differentiated through the ensemble.

Actors walk on from window to window; the actor network climbs the discounted utility of a window plus the value of
where it ends, and the value is fitted to TD(lambda) returns (after Xu et al., 2022). Long chains of derivatives, which
explode, are thus never formed.
"""

from dataclasses import dataclass, replace
from typing import NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Int, PRNGKeyArray

from maxplore import checks
from maxplore.history import History
from maxplore.mdp import ExplorationMDP, Step
from maxplore.models.adam import Moments, adam
from maxplore.models.mlp import MLP, Activation, activation_named
from maxplore.normalizer import Normalizer
from maxplore.solvers.actor import Actor, adapted, new_actor, orthogonal
from maxplore.solvers.base import Solution, SolveInfo, Solver, Worth, born, imagined, per_step, real
from maxplore.solvers.draws import normal


@dataclass(frozen=True)
class GradientConfig:
    """How to climb the utility."""

    iterations: int = 40
    """Windows, each with one update of the policy."""
    actors: int = 32
    """Imagined walks side by side."""
    horizon: int = 10
    """Steps of a window: as far as derivatives reach."""
    lifetime: int = 50
    """Imagined steps after which all actors begin again in the current real state."""
    from_history: float = 0.0
    """Share of lives that begin anywhere in D instead, for a policy that is to know its way everywhere."""
    discount: float = 0.99
    """Of utilities along a walk."""
    trace: float = 0.95
    """lambda of the value's targets: 0 trusts the value after one step, 1 only at the window's end."""
    depth: int = 2
    """Hidden layers of policy and value."""
    width: int = 128
    """Units of each hidden layer."""
    activation: str | Activation = "elu"
    """A smooth one, since it is differentiated along walks."""
    policy_rate: float = 2e-3
    """Adam's learning rate for the policy."""
    value_rate: float = 5e-3
    """Adam's learning rate for the value."""
    value_updates: int = 4
    """Gradient steps of the value for each window, on all of its states."""
    value_units: float = 0.2
    """How fast the units that the value is told in follow what values are, whatever a task pays in."""
    max_norm: float = 1.0
    """The policy's gradient is scaled down to this norm."""
    restraint: float = 0.1
    """Price of means beyond 2 before squashing, where actions hardly change any more: in units of the utility."""
    entropy: float = 0.0
    """Weight of the policy's entropy, in utility per step."""
    log_std: tuple[float, float] = (-5.0, 1.0)
    """Bounds of the policy's log standard deviation, before squashing."""
    initial_log_std: float = 0.0
    """Where that begins."""
    warm_start: bool = True
    """Whether a solve goes on from the networks of the one before."""

    def __post_init__(self) -> None:
        checks.at_least(1, self, "iterations", "actors", "horizon", "lifetime", "width", "value_updates")
        checks.at_least(0, self, "depth")
        checks.positive(self, "policy_rate", "value_rate", "max_norm")
        checks.not_negative(self, "restraint", "entropy")
        checks.share(self, "discount", "trace", "value_units", "from_history")
        checks.bounds(self, "log_std")
        activation_named(self.activation)


class Value(eqx.Module):
    """The discounted utility from a state on: a network's output in units of what values have been lately."""

    network: MLP
    center: Float[Array, ""]
    spread: Float[Array, ""]

    def __call__(self, normalized: Float[Array, " dims"]) -> Float[Array, ""]:
        return self.center + self.spread * self.network(normalized)[0]

    def rescaled(self, targets: Float[Array, "*rows"], chosen: Bool[Array, "*rows"], rate: float) -> "Value":
        """The same values, with centre and spread moved by `rate` towards those of the chosen `targets`."""
        center = self.center + rate * (jnp.mean(targets, where=chosen) - self.center)
        spread = self.spread + rate * (jnp.std(targets, where=chosen) - self.spread)
        spread = jnp.maximum(spread, 1e-6 + 1e-3 * jnp.abs(center))
        last = self.network.layers[-1]
        weight = last.weight * (self.spread / spread)
        bias = (last.bias * self.spread + self.center - center) / spread
        network = eqx.tree_at(lambda n: (n.layers[-1].weight, n.layers[-1].bias), self.network, (weight, bias))
        return Value(network, center, spread)


class Climber(eqx.Module):
    """What goes on from solve to solve."""

    actor: Actor
    value: Value
    actor_moments: Moments
    value_moments: Moments

    def values(self, states: Float[Array, "*batch dims"]) -> Float[Array, "*batch"]:
        """The value of each state."""
        flat = states.reshape(-1, states.shape[-1])
        return jax.vmap(lambda s: self.value(self.actor.normalizer.normalize(s)))(flat).reshape(states.shape[:-1])


class ClimbedWorth(Worth):
    """The value's account."""

    value: Value
    normalizer: Normalizer

    def __call__(self, state: Float[Array, " dims"]) -> Float[Array, ""]:
        return self.value(self.normalizer.normalize(state))


class _Walk(NamedTuple):
    climber: Climber
    states: Float[Array, "actors dims"]
    age: Int[Array, " actors"]
    info: SolveInfo


class Gradient(Solver):
    """Short-horizon actor-critic with a terminal value; the default of the fast preset."""

    config: GradientConfig = eqx.field(static=True, default=GradientConfig())

    @property
    def uses_history(self) -> bool:
        return self.config.from_history > 0

    @property
    def warm_start(self) -> bool:
        return self.config.warm_start

    def within(self, steps: int) -> "Gradient":
        return Gradient(replace(self.config, lifetime=min(self.config.lifetime, steps)))

    def check(self, mdp: ExplorationMDP) -> None:
        real(mdp, "gradient")

    def init(self, mdp: ExplorationMDP, *, key: PRNGKeyArray) -> Climber:
        config, ensemble = self.config, real(mdp, "gradient")
        key_actor, key_value = jax.random.split(key)
        dims, (actions,) = ensemble.state.mean.size, ensemble.action_entry.shape
        actor = new_actor(
            ensemble.state,
            actions,
            depth=config.depth,
            width=config.width,
            activation=config.activation,
            log_std=config.log_std,
            initial_log_std=config.initial_log_std,
            key=key_actor,
        )
        network = orthogonal(
            dims, 1, depth=config.depth, width=config.width, activation=config.activation, key=key_value
        )
        network = eqx.tree_at(lambda n: n.layers[-1].weight, network, 0.01 * network.layers[-1].weight)
        value = Value(network, jnp.zeros(()), jnp.ones(()))
        return Climber(actor, value, Moments.zero(actor.network), Moments.zero(network))

    @property
    def rounds(self) -> int:
        return self.config.iterations

    def run(
        self, mdp: ExplorationMDP, state: Array, history: History | None, memory: Climber, *, key: PRNGKeyArray
    ) -> Solution:
        def each(walk: _Walk, number: Int[Array, ""]) -> tuple[_Walk, Float[Array, ""]]:
            return self.round(mdp, state, history, walk, number, key=key)

        begin = self.begun(mdp, state, history, memory, key=key)
        return self.ended(*jax.lax.scan(each, begin, jnp.arange(self.rounds)))

    def begun(
        self, mdp: ExplorationMDP, state: Array, history: History | None, memory: Climber, *, key: PRNGKeyArray
    ) -> _Walk:
        config = self.config
        climber = renormalized(memory, real(mdp, "gradient").state)
        states = born(mdp, state, history, config.actors, config.from_history, key=jax.random.fold_in(key, 2**32 - 1))
        # Of different ages from the beginning: every window then sees all parts of a life.
        ages = jnp.arange(config.actors) * config.lifetime // config.actors
        return _Walk(climber, states, ages, SolveInfo.blank())

    def round(
        self,
        mdp: ExplorationMDP,
        state: Array,
        history: History | None,
        stage: _Walk,
        number: Int[Array, ""],
        *,
        key: PRNGKeyArray,
    ) -> tuple[_Walk, Float[Array, ""]]:
        config, walk = self.config, stage
        # Numbered through from solve to solve, so that two of them can be one long one.
        own = jax.random.fold_in(key, walk.climber.actor_moments.steps)
        climber, steps, info = self.improve(mdp, walk.climber, walk.states, walk.info, key=own)
        age = walk.age + config.horizon
        over = jnp.any(steps.terminated, axis=0) | (age >= config.lifetime)
        begun = born(mdp, state, history, config.actors, config.from_history, key=jax.random.fold_in(own, 2))
        states = jnp.where(over[:, None], begun, steps.next_state[-1])
        return _Walk(climber, states, jnp.where(over, 0, age), info), per_step(steps)

    def ended(self, stage: _Walk, paid: Float[Array, " rounds"]) -> Solution:
        config = self.config
        life = min(-(-config.lifetime // config.horizon), config.iterations)
        info = stage.info._replace(before=jnp.mean(paid[:life]), after=jnp.mean(paid[-life:]))
        return Solution(stage.climber.actor, stage.climber, info)

    def worth(self, memory: Climber) -> ClimbedWorth:
        return ClimbedWorth(self.config.discount, memory.value, memory.actor.normalizer)

    def improve(
        self,
        mdp: ExplorationMDP,
        climber: Climber,
        states: Float[Array, "actors dims"],
        info: SolveInfo,
        *,
        key: PRNGKeyArray,
    ) -> tuple[Climber, Step, SolveInfo]:
        """One window: a step of the policy along its gradient, and the value fitted to what was seen."""
        config, network = self.config, climber.actor.network
        objective = lambda network: self.loss(mdp, climber, network, states, key=key)  # noqa: E731
        (policy_loss, (steps, entropy)), slope = jax.value_and_grad(objective, has_aux=True)(network)
        norm = jnp.sqrt(sum(jnp.sum(x**2) for x in jax.tree.leaves(slope)))
        sound = jnp.isfinite(norm)
        shrink = jnp.minimum(1.0, config.max_norm / jnp.maximum(norm, 1e-12))
        slope = jax.tree.map(lambda x: jnp.where(sound, shrink * x, 0.0), slope)
        network, moments = adam(network, slope, climber.actor_moments, learning_rate=config.policy_rate)
        value, value_moments, error = self.fit_value(climber, steps)
        climber = Climber(eqx.tree_at(lambda a: a.network, climber.actor, network), value, moments, value_moments)
        info = imagined(info, steps)._replace(
            policy_loss=policy_loss,
            value_loss=error,
            entropy=entropy,
            temperature=jnp.asarray(config.entropy, jnp.float32),
            skipped=info.skipped + ~sound,
        )
        return climber, steps, info

    def loss(
        self,
        mdp: ExplorationMDP,
        climber: Climber,
        network: MLP,
        states: Float[Array, "actors dims"],
        *,
        key: PRNGKeyArray,
    ) -> tuple[Float[Array, ""], tuple[Step, Float[Array, ""]]]:
        """Minus what a window is worth per step, as a function of the policy's network; the window and the entropy."""
        config, (key_walk, key_noise) = self.config, jax.random.split(key)
        actor = eqx.tree_at(lambda a: a.network, climber.actor, network)

        def act(states: Array, noise: Array) -> Array:
            return jax.vmap(actor.draw)(states, noise).action

        def noise(key: PRNGKeyArray) -> Array:
            return normal(key, (states.shape[0], actor.dims))

        steps = mdp.rollout(act, states, config.horizon, key=key_walk, noise=noise)
        goes_on = steps.alive[-1] & ~steps.terminated[-1]
        beyond = jnp.where(goes_on, climber.values(steps.next_state[-1]), 0.0)
        fade = config.discount ** jnp.arange(config.horizon)
        gained = jnp.sum(fade[:, None] * steps.reward, axis=0) + config.discount**config.horizon * beyond

        # What the policy is like where it has been.
        seen = jax.lax.stop_gradient(steps.state).reshape(-1, steps.state.shape[-1])
        drawn = jax.vmap(actor.draw)(seen, normal(key_noise, (seen.shape[0], actor.dims)))
        entropy = -jnp.mean(drawn.log_density)
        excess = jnp.mean(jnp.maximum(jnp.abs(drawn.mean) - 2.0, 0.0) ** 2)
        unit = jax.lax.stop_gradient(jnp.mean(jnp.abs(steps.reward)))
        loss = unit * (config.restraint * excess - config.entropy * entropy) - jnp.mean(gained) / config.horizon
        return loss, (steps, entropy)

    def fit_value(self, climber: Climber, steps: Step) -> tuple[Value, Moments, Float[Array, ""]]:
        """The value after some steps towards the window's returns, and its mean squared error before them."""
        config = self.config
        targets = lambda_returns(
            steps.reward,
            climber.values(steps.next_state),
            steps.terminated,
            discount=config.discount,
            trace=config.trace,
        )
        value = climber.value.rescaled(targets, steps.alive, config.value_units)
        goals = (targets - value.center) / value.spread
        rows = jax.vmap(jax.vmap(climber.actor.normalizer.normalize))(steps.state)

        def error(network: MLP) -> Float[Array, ""]:
            return jnp.mean((jax.vmap(jax.vmap(network))(rows)[..., 0] - goals) ** 2, where=steps.alive)

        def learn(carry: tuple[MLP, Moments], _: None) -> tuple[tuple[MLP, Moments], Float[Array, ""]]:
            off, slope = jax.value_and_grad(error)(carry[0])
            return adam(carry[0], slope, carry[1], learning_rate=config.value_rate), off

        start = (value.network, climber.value_moments)
        (network, moments), off = jax.lax.scan(learn, start, None, length=config.value_updates)
        return Value(network, value.center, value.spread), moments, off[0] * value.spread**2


def lambda_returns(
    rewards: Float[Array, "horizon actors"],
    values: Float[Array, "horizon actors"],
    terminated: Bool[Array, "horizon actors"],
    *,
    discount: float,
    trace: float,
) -> Float[Array, "horizon actors"]:
    """TD(lambda) returns of a window; `values` are those of the next states."""
    values = jnp.where(terminated, 0.0, values)

    def back(following: Array, now: tuple[Array, Array, Array]) -> tuple[Array, Array]:
        reward, value, terminated = now
        ahead = jnp.where(terminated, 0.0, (1 - trace) * value + trace * following)
        gained = reward + discount * ahead
        return gained, gained

    return jax.lax.scan(back, values[-1], (rewards, values, terminated), reverse=True)[1]


def renormalized(climber: Climber, statistics: Normalizer) -> Climber:
    """The same policy and value, as functions of states in new statistics."""
    old = climber.actor.normalizer
    actor = Actor(adapted(climber.actor.network, old, statistics), statistics, climber.actor.log_std)
    value = eqx.tree_at(lambda v: v.network, climber.value, adapted(climber.value.network, old, statistics))
    return Climber(actor, value, climber.actor_moments, climber.value_moments)
