"""The paper's search (appendix C.2): open-loop Monte-Carlo tree search in the tabulated exploration MDP.

A node is a sequence of actions, not a state: every round walks down from the current state anew, drawing each next
state from the table. What the paper leaves open is a field of `Search`.
"""

from dataclasses import dataclass
from typing import NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Int, PRNGKeyArray

from maxplore.solvers.value_iteration import Table


@dataclass(frozen=True)
class Search:
    """How to search. The first two are the paper's numbers, the others our reading of what it does not say."""

    rounds: int = 25
    """Walks down the tree, each of which adds one node."""
    trajectories: int = 5
    """Random trajectories from a new node; their average is its first value."""
    depth: int | None = None
    """Steps that a plan looks ahead; None is to the end of the episode."""
    discount: float = 1.0
    """Of utilities along a plan."""
    prior: float = 1.0
    """Thompson sampling: standard deviation of one return, before any is seen. It counts as one observation."""


class Tree(NamedTuple):
    """Returns of plans that begin with a node's actions. Node 0 is the root."""

    children: Int[Array, "nodes actions"]
    """-1 where there is none yet."""
    visits: Float[Array, " nodes"]
    mean: Float[Array, " nodes"]
    spread: Float[Array, " nodes"]
    """Sum of squared deviations from the mean."""


Run = tuple[Array, Array, Array]
"""State, return so far, and whether the episode goes on."""


class Walk(NamedTuple):
    node: Int[Array, ""]
    state: Int[Array, ""]
    length: Int[Array, ""]
    path: Int[Array, " longest"]
    paid: Float[Array, " longest"]
    inside: Array
    key: PRNGKeyArray


def mcts(
    table: Table,
    state: Int[Array, ""],
    remaining: Int[Array, ""],
    horizon: int,
    search: Search = Search(),  # noqa: B008  (frozen)
    *,
    key: PRNGKeyArray,
) -> Float[Array, " actions"]:
    """The average return of the plans that begin with each action."""
    actions = table.pays.shape[1]
    edges = jnp.cumsum(table.transition, axis=-1)
    depth = jnp.minimum(remaining, horizon if search.depth is None else search.depth)
    longest = search.rounds + 1
    decay = search.discount ** jnp.arange(horizon)

    def follow(state: Array, action: Array, key: PRNGKeyArray) -> Array:
        drawn = jnp.sum(jax.random.uniform(key) * edges[state, action, -1] > edges[state, action])
        return jnp.minimum(drawn, table.pays.shape[0] - 1).astype(jnp.int32)

    def select(tree: Tree, node: Array, key: PRNGKeyArray) -> Array:
        """Thompson sampling: an action by a draw from the posterior of its mean return; new ones first."""
        child = tree.children[node]
        visits = jnp.maximum(tree.visits[child], 1.0)
        deviation = jnp.sqrt((search.prior**2 + tree.spread[child]) / (visits + 1.0) / visits)
        draw = tree.mean[child] + deviation * jax.random.normal(key, (actions,))
        return jnp.argmax(jnp.where(child < 0, 1e9 + draw, draw)).astype(jnp.int32)

    def random_return(state: Array, steps: Array, key: PRNGKeyArray) -> Array:
        def step(
            carry: tuple[Array, Array, Array], now: tuple[Array, PRNGKeyArray]
        ) -> tuple[tuple[Array, Array, Array], None]:
            state, total, alive = carry
            time, key = now
            key_action, key_state = jax.random.split(key)
            action = jax.random.randint(key_action, (), 0, actions)
            total = total + jnp.where(time < steps, alive * decay[time] * table.pays[state, action], 0.0)
            state = follow(state, action, key_state)
            return (state, total, alive * table.goes_on[state]), None

        start = (state, jnp.zeros(()), table.goes_on[state])
        return jax.lax.scan(step, start, (jnp.arange(horizon), jax.random.split(key, horizon)))[0][1]

    def round_(number: Array, carry: tuple[Tree, PRNGKeyArray]) -> tuple[Tree, PRNGKeyArray]:
        tree, key = carry
        key, key_walk, key_random = jax.random.split(key, 3)

        def descend(walk: Walk) -> Walk:
            key, key_select, key_state = jax.random.split(walk.key, 3)
            action = select(tree, walk.node, key_select)
            child = tree.children[walk.node, action]
            new = child < 0
            node = jnp.where(new, number + 1, child)
            following = follow(walk.state, action, key_state)
            return Walk(
                node,
                following,
                walk.length + 1,
                walk.path.at[walk.length].set(walk.node * actions + action),
                walk.paid.at[walk.length].set(table.pays[walk.state, action]),
                ~new & (table.goes_on[following] > 0),
                key,
            )

        def going(walk: Walk) -> Array:
            return walk.inside & (walk.length < depth)

        none = jnp.zeros(longest)
        start = Walk(jnp.int32(0), state, jnp.int32(0), jnp.full(longest, -1), none, jnp.bool_(True), key_walk)
        walk = jax.lax.while_loop(going, descend, start)
        keys = jax.random.split(key_random, search.trajectories)
        beyond = jnp.mean(jax.vmap(lambda key: random_return(walk.state, depth - walk.length, key))(keys))

        # From the new node back to the root: each node learns the return from its own step on.
        def backup(carry: tuple[Tree, Array], step: Array) -> tuple[tuple[Tree, Array], None]:
            tree, value = carry
            here = step < walk.length
            parent, action = walk.path[step] // actions, walk.path[step] % actions
            child = jnp.where(tree.children[parent, action] < 0, number + 1, tree.children[parent, action])
            value = jnp.where(here, walk.paid[step] + search.discount * value, value)
            visits = tree.visits[child] + 1.0
            gap = value - tree.mean[child]
            grown = Tree(
                tree.children.at[parent, action].set(child),
                tree.visits.at[child].set(visits),
                tree.mean.at[child].add(gap / visits),
                tree.spread.at[child].add(gap * (gap - gap / visits)),
            )
            return (jax.tree.map(lambda new, old: jnp.where(here, new, old), grown, tree), value), None

        (tree, _), _ = jax.lax.scan(backup, (tree, beyond), jnp.arange(longest), reverse=True)
        return tree, key

    none = jnp.zeros(longest)
    empty = Tree(jnp.full((longest, actions), -1), none, none, none)
    tree, _ = jax.lax.fori_loop(0, search.rounds, round_, (empty, key))
    return jnp.where(tree.children[0] < 0, -jnp.inf, tree.mean[tree.children[0]])
