"""Soft actor-critic in the exploration MDP (appendix D.2): first on D, then in imagination from the current state.

The paper's form, after Haarnoja et al. (2018a), has twin Q, a value network with a slow target, and a fixed
temperature; that of today, twin Q with slow targets and a temperature of its own making, is an option.
"""

import math
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Int, PRNGKeyArray

from maxplore import checks
from maxplore.errors import InputError
from maxplore.history import History
from maxplore.mdp import ExplorationMDP
from maxplore.models.adam import Moments, adam
from maxplore.models.mlp import MLP, Activation, activation_named
from maxplore.normalizer import Normalizer
from maxplore.solvers.actor import Actor, adapted, new_actor, orthogonal
from maxplore.solvers.base import Solution, SolveInfo, Solver, Worth, born, imagined, per_step, real
from maxplore.solvers.draws import normal, uniform
from maxplore.solvers.replay import Batch, from_history, from_steps


@dataclass(frozen=True)
class SacConfig:
    """How to learn. The defaults are the paper's, and the authors' code's where the paper is silent."""

    history_updates: int = 100
    """Phase 1: updates on D, its utilities computed anew under the current ensemble."""
    active: bool = True
    """Whether phase 2, in imagination, follows. Reactive methods do without."""
    episodes: int = 50
    """Phase 2: imagined episodes."""
    steps: int = 50
    """Steps of each."""
    actors: int = 128
    """Actors of each, all from the current real state."""
    from_history: float = 0.0
    """Share of them that begin anywhere in D instead: with few `steps`, short walks from states that are known."""
    random_episodes: int = 3
    """The first of them: uniformly random actions, and no update."""
    updates: int = 50
    """Updates after each of the others."""
    keep_history: bool = False
    """Whether D stays in the replay in phase 2, as for exploitation, or only imagination counts."""
    batch_size: int = 4096
    """Transitions in an update."""
    depth: int = 2
    """Hidden layers of every network."""
    width: int = 256
    """Units of each hidden layer."""
    activation: str | Activation = "leaky_relu"
    """A name from `ACTIVATIONS`, or any elementwise function."""
    learning_rate: float = 1e-3
    """Adam's, for all networks."""
    clip: float = 5.0
    """Gradient values are clipped to plus or minus this."""
    discount: float = 0.99
    """Of utilities."""
    tau: float = 0.005
    """Share of the way that targets move in an update."""
    temperature: float = 0.02
    """alpha, the weight of entropy: 0.02 for MAX and JDRX, 0.2 for TVAX and PERX, 0.4 for exploitation."""
    automatic: bool = False
    """Whether the temperature is learned, from there on, so that the entropy comes to `target_entropy`."""
    target_entropy: float | None = None
    """In nats, of actions in [-1, 1]; None is minus the number of action dimensions."""
    twin_targets: bool = False
    """Slow copies of both Q networks, in place of the value network and its target."""
    log_std: tuple[float, float] = (-20.0, 2.0)
    """Bounds of the policy's log standard deviation."""
    initial_log_std: float | None = None
    """Where that begins; None is around the middle of its bounds."""
    penalty: float = 1e-3
    """Weight of the mean squares of the policy's mean and log standard deviation."""
    warm_start: bool = False
    """Whether a solve goes on from the networks of the one before, or from newly drawn ones, as in the paper."""

    def __post_init__(self) -> None:
        checks.at_least(1, self, "episodes", "steps", "actors", "updates", "batch_size", "width")
        checks.at_least(0, self, "history_updates", "random_episodes", "depth")
        checks.positive(self, "learning_rate", "clip", "temperature")
        checks.not_negative(self, "penalty")
        checks.share(self, "discount", "tau", "from_history")
        checks.bounds(self, "log_std")
        if self.active and self.random_episodes >= self.episodes:
            raise InputError(
                f"random_episodes is {self.random_episodes}, expected fewer than the {self.episodes} episodes: "
                "none would be learned from"
            )
        if not self.active and self.history_updates < 1:
            raise InputError("history_updates is 0 without active: nothing would be learned")
        activation_named(self.activation)


class Networks(eqx.Module):
    """What is learned by gradients."""

    actor: MLP
    critics: tuple[MLP, MLP]
    value: MLP | None
    """None with twin targets."""
    log_temperature: Float[Array, ""]


class Agent(eqx.Module):
    """Networks, slow targets, and the optimiser's memory."""

    networks: Networks
    target: Any
    """Of the value network, or of both critics."""
    moments: Moments
    normalizer: Normalizer


class Losses(NamedTuple):
    """What one update reports."""

    policy: Float[Array, ""]
    value: Float[Array, ""]
    entropy: Float[Array, ""]
    skipped: Int[Array, ""]


class SoftWorth(Worth):
    """The value network's account, or without one the lesser of what both critics promise."""

    actor: Actor
    account: MLP | tuple[MLP, MLP]

    def __call__(self, state: Float[Array, " dims"]) -> Float[Array, ""]:
        seen = self.actor.normalizer.normalize(state)
        if isinstance(self.account, MLP):
            return self.account(seen)[0]
        both = jnp.concatenate([seen, self.actor(state)])
        return jnp.minimum(*(critic(both)[0] for critic in self.account))


class Stage(NamedTuple):
    """Where a solve stands."""

    agent: Agent
    replay: Float[Array, "rows columns"]
    size: Int[Array, ""]
    """Rows of D in the replay; those of imagined episodes follow."""
    info: SolveInfo
    keys: Array
    """One for each imagined episode."""


class Sac(Solver):
    """The paper's solver."""

    config: SacConfig = eqx.field(static=True, default=SacConfig())

    @property
    def uses_history(self) -> bool:
        return self.config.history_updates > 0 or self.config.keep_history or self.config.from_history > 0

    @property
    def warm_start(self) -> bool:
        return self.config.warm_start

    def within(self, steps: int) -> "Sac":
        return Sac(replace(self.config, steps=min(self.config.steps, steps)))

    def check(self, mdp: ExplorationMDP) -> None:
        real(mdp, "sac")

    def init(self, mdp: ExplorationMDP, *, key: PRNGKeyArray) -> Agent:
        config, ensemble = self.config, real(mdp, "sac")
        dims, (actions,) = ensemble.state.mean.size, ensemble.action_entry.shape
        key_actor, key_one, key_two, key_value = jax.random.split(key, 4)
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

        def scalar(inputs: int, key: PRNGKeyArray) -> MLP:
            return orthogonal(inputs, 1, depth=config.depth, width=config.width, activation=config.activation, key=key)

        critics = (scalar(dims + actions, key_one), scalar(dims + actions, key_two))
        value = None if config.twin_targets else scalar(dims, key_value)
        networks = Networks(actor.network, critics, value, jnp.full((), math.log(config.temperature), jnp.float32))
        target = critics if value is None else value
        return Agent(networks, target, Moments.zero(networks), ensemble.state)

    @property
    def rounds(self) -> int | None:
        return self.config.episodes if self.config.active else None

    def run(
        self, mdp: ExplorationMDP, state: Array, history: History | None, memory: Agent, *, key: PRNGKeyArray
    ) -> Solution:
        def each(stage: Stage, number: Int[Array, ""]) -> tuple[Stage, Float[Array, ""]]:
            return self.round(mdp, state, history, stage, number, key=key)

        stage = self.begun(mdp, state, history, memory, key=key)
        if self.rounds is None:
            return self.ended(stage, jnp.full(1, jnp.nan))
        return self.ended(*jax.lax.scan(each, stage, jnp.arange(self.rounds)))

    def begun(
        self, mdp: ExplorationMDP, state: Array, history: History | None, memory: Agent, *, key: PRNGKeyArray
    ) -> Stage:
        """Phase 1: updates on D."""
        config, (key_history, key_imagine) = self.config, jax.random.split(key)
        agent = renormalized(memory, real(mdp, "sac").state)
        info, rows = SolveInfo.blank(), None
        if history is not None:
            rows, strange = from_history(mdp, history)
            info = info._replace(nonfinite=strange)
            if config.history_updates > 0:
                agent, losses = self.learn(agent, rows, history.size, config.history_updates, key=key_history)
                info = _reported(info, losses)
        (dims,), (actions,) = mdp.ensemble.state_entry.shape, mdp.ensemble.action_entry.shape
        room = config.episodes * config.steps * config.actors if config.active else 0
        replay, size = jnp.zeros((room, 2 * dims + actions + 2)), jnp.zeros((), jnp.int32)
        if rows is not None and history is not None and config.keep_history:
            replay, size = jnp.concatenate([rows, replay]), history.size  # what D leaves free is written over
        return Stage(agent, replay, size, info, jax.random.split(key_imagine, config.episodes))

    def round(
        self,
        mdp: ExplorationMDP,
        state: Array,
        history: History | None,
        stage: Stage,
        number: Int[Array, ""],
        *,
        key: PRNGKeyArray,
    ) -> tuple[Stage, Float[Array, ""]]:
        """Phase 2: an imagined episode, and updates on all of them so far."""
        config, (actions,) = self.config, mdp.ensemble.action_entry.shape
        (agent, replay, size, info, keys), an_episode = stage, config.steps * config.actors
        own = keys[number]
        key_walk, key_learn = jax.random.split(own)
        at_random, actor = number < config.random_episodes, self.actor(agent)

        def noise(key: PRNGKeyArray) -> tuple[Array, Array]:
            key_noise, key_uniform = jax.random.split(key)
            return normal(key_noise, (config.actors, actions)), uniform(key_uniform, (config.actors, actions))

        def act(states: Array, noise: tuple[Array, Array]) -> Array:
            return jnp.where(at_random, noise[1], jax.vmap(actor.draw)(states, noise[0]).action)

        start = born(mdp, state, history, config.actors, config.from_history, key=jax.random.fold_in(own, 2))
        steps = mdp.rollout(act, start, config.steps, key=key_walk, noise=noise, restart=True)
        replay = jax.lax.dynamic_update_slice_in_dim(replay, from_steps(steps), size + number * an_episode, 0)
        filled = size + (number + 1) * an_episode

        def learn() -> tuple[Agent, SolveInfo]:
            learned, losses = self.learn(agent, replay, filled, config.updates, key=key_learn)
            return learned, _reported(info, losses)

        agent, info = jax.lax.cond(at_random, lambda: (agent, info), learn)
        return Stage(agent, replay, size, imagined(info, steps), keys), per_step(steps)

    def ended(self, stage: Stage, paid: Float[Array, " rounds"]) -> Solution:
        agent = stage.agent
        info = stage.info._replace(before=paid[0], after=paid[-1], temperature=jnp.exp(agent.networks.log_temperature))
        return Solution(self.actor(agent), agent, info)

    def actor(self, agent: Agent) -> Actor:
        """The agent's policy."""
        return Actor(agent.networks.actor, agent.normalizer, self.config.log_std)

    def worth(self, memory: Agent) -> SoftWorth:
        networks = memory.networks
        account = networks.critics if networks.value is None else networks.value
        return SoftWorth(self.config.discount, self.actor(memory), account)

    def learn(
        self,
        agent: Agent,
        replay: Float[Array, "rows columns"],
        filled: Int[Array, ""],
        updates: int,
        *,
        key: PRNGKeyArray,
    ) -> tuple[Agent, Losses]:
        """So many updates, each on a batch drawn from the first `filled` rows."""
        config, actions = self.config, agent.networks.actor.layers[-1].bias.size // 2
        key_rows, key_noise = jax.random.split(key)
        # All draws at once: a generator inside the loop costs more than many of its matrix products.
        rows = jax.random.randint(key_rows, (updates, config.batch_size), 0, jnp.maximum(filled, 1))
        noise = normal(key_noise, (updates, 2 if config.twin_targets else 1, config.batch_size, actions))

        def step(agent: Agent, now: tuple[Array, Array]) -> tuple[Agent, Losses]:
            batch = Batch.of(replay[now[0]], agent.normalizer, actions)
            return self.update(agent, batch, now[1])

        agent, losses = jax.lax.scan(step, agent, (rows, noise))
        return agent, Losses(losses.policy[-1], losses.value[-1], losses.entropy[-1], jnp.sum(losses.skipped))

    def update(self, agent: Agent, batch: Batch, noise: Float[Array, "draws batch actions"]) -> tuple[Agent, Losses]:
        """One step of every network on one batch."""
        config, normalizer = self.config, Normalizer.identity(batch.state.shape[1])  # a batch is normalised already
        actions = noise.shape[-1]
        goal_entropy = -float(actions) if config.target_entropy is None else config.target_entropy

        def quality(critics: tuple[MLP, MLP], states: Array, actions: Array) -> tuple[Array, Array]:
            rows = jnp.concatenate([states, actions], axis=1)
            one, two = (jax.vmap(critic)(rows)[:, 0] for critic in critics)
            return one, two

        def loss(networks: Networks) -> tuple[Array, tuple[Array, Array, Array]]:
            fixed = jax.lax.stop_gradient(networks)
            temperature = jnp.exp(fixed.log_temperature)
            drawn = jax.vmap(Actor(networks.actor, normalizer, config.log_std).draw)(batch.state, noise[0])
            promised = jnp.minimum(*quality(fixed.critics, batch.state, drawn.action))
            soft = promised - temperature * drawn.log_density
            squares = jnp.mean(drawn.mean**2) + jnp.mean(drawn.log_std**2)
            policy_loss = -jnp.mean(soft) + config.penalty * squares
            entropy = -jnp.mean(jax.lax.stop_gradient(drawn.log_density))
            temperature_loss = networks.log_temperature * (entropy - goal_entropy) if config.automatic else 0.0

            if networks.value is None:
                ahead = jax.vmap(Actor(fixed.actor, normalizer, config.log_std).draw)(batch.next_state, noise[1])
                following = jnp.minimum(*quality(agent.target, batch.next_state, ahead.action))
                following = following - temperature * ahead.log_density
                value_loss = 0.0
            else:
                following = jax.vmap(agent.target)(batch.next_state)[:, 0]
                off = jax.vmap(networks.value)(batch.state)[:, 0] - jax.lax.stop_gradient(soft)
                value_loss = jnp.mean(off**2)
            goal = batch.reward + config.discount * (1.0 - batch.terminated) * following
            one, two = quality(networks.critics, batch.state, batch.action)
            critic_loss = jnp.mean((one - goal) ** 2) + jnp.mean((two - goal) ** 2)
            total = policy_loss + value_loss + critic_loss + temperature_loss
            return total, (policy_loss, critic_loss / 2, entropy)

        (total, (policy_loss, critic_loss, entropy)), slope = jax.value_and_grad(loss, has_aux=True)(agent.networks)
        sound = jnp.isfinite(total)
        slope = jax.tree.map(lambda x: jnp.where(sound, x, 0.0), slope)
        networks, moments = adam(
            agent.networks, slope, agent.moments, learning_rate=config.learning_rate, clip=config.clip
        )
        source = networks.critics if networks.value is None else networks.value
        target = jax.tree.map(lambda old, new: old + config.tau * (new - old), agent.target, source)
        losses = Losses(policy_loss, critic_loss, entropy, (~sound).astype(jnp.int32))
        return Agent(networks, target, moments, agent.normalizer), losses


def _reported(info: SolveInfo, losses: Losses) -> SolveInfo:
    return info._replace(
        policy_loss=losses.policy,
        value_loss=losses.value,
        entropy=losses.entropy,
        skipped=info.skipped + losses.skipped,
    )


def renormalized(agent: Agent, statistics: Normalizer) -> Agent:
    """The same functions of states, in new statistics."""

    def change(network: MLP) -> MLP:
        return adapted(network, agent.normalizer, statistics)

    is_network = lambda x: isinstance(x, MLP)  # noqa: E731
    networks, target = jax.tree.map(
        lambda x: change(x) if is_network(x) else x, (agent.networks, agent.target), is_leaf=is_network
    )
    return Agent(networks, target, agent.moments, statistics)
