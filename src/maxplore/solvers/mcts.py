"""The paper's search (appendix C.2): open-loop Monte-Carlo tree search in the tabulated exploration MDP.

A node is a sequence of actions, not a state: every round walks down from the current state anew, drawing each next
state from the table. What the paper leaves open is a field of `Search`.
"""

from dataclasses import dataclass
from typing import NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Int, PRNGKeyArray

from maxplore import checks
from maxplore.errors import InputError
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

    def __post_init__(self) -> None:
        checks.at_least(1, self, "rounds", "trajectories")
        if self.depth is not None and self.depth < 1:
            raise InputError(f"depth is {self.depth}, expected at least 1, or None for the end of the episode")
        checks.share(self, "discount")
        checks.not_negative(self, "prior")

    def values(
        self, table: Table, state: Int[Array, ""], remaining: Int[Array, ""], horizon: int, *, key: PRNGKeyArray
    ) -> Float[Array, " actions"]:
        """The average return of the plans that begin with each action."""
        return mcts(table, state, remaining, horizon, self, key=key)


class Tree(NamedTuple):
    """Returns of plans that begin with a node's actions. Node 0 is the root."""

    children: Int[Array, "nodes actions"]
    """-1 where there is none yet."""
    visits: Float[Array, " nodes"]
    mean: Float[Array, " nodes"]
    spread: Float[Array, " nodes"]
    """Sum of squared deviations from the mean."""


class Walk(NamedTuple):
    """One way down the tree."""

    node: Int[Array, ""]
    state: Int[Array, ""]
    length: Int[Array, ""]
    edges: Int[Array, " longest"]
    """The edges taken, each as parent node times the number of actions, plus the action."""
    paid: Float[Array, " longest"]
    inside: Bool[Array, ""]


Run = tuple[Array, Array, Array]
"""State, return so far, and what a utility of 1 would be worth now: 0 once the episode is over."""


def mcts(
    table: Table,
    state: Int[Array, ""],
    remaining: Int[Array, ""],
    horizon: int,
    search: Search = Search(),
    *,
    key: PRNGKeyArray,
) -> Float[Array, " actions"]:
    """The average return of the plans that begin with each action."""
    depth = jnp.minimum(remaining, horizon if search.depth is None else search.depth)
    table = Table(jnp.cumsum(table.transition, axis=-1), table.pays, table.goes_on)  # cumulative: easy to draw from

    def one_round(number: Array, carry: tuple[Tree, PRNGKeyArray]) -> tuple[Tree, PRNGKeyArray]:
        tree, key = carry
        key, key_walk, key_random = jax.random.split(key, 3)
        walk = _descend(table, search, tree, state, depth, number + 1, key=key_walk)
        draws = jax.random.uniform(key_random, (search.trajectories, horizon, 2))
        beyond = jax.vmap(lambda draws: _random_return(table, search, walk.state, depth - walk.length, draws))
        value = jnp.mean(beyond(draws))
        return _backup(search, tree, walk, value, number + 1), key

    nodes, actions = search.rounds + 1, table.pays.shape[1]
    none = jnp.zeros(nodes)
    empty = Tree(jnp.full((nodes, actions), -1), none, none, none)
    tree, _ = jax.lax.fori_loop(0, search.rounds, one_round, (empty, key))
    return jnp.where(tree.children[0] < 0, -jnp.inf, tree.mean[tree.children[0]])


def _follow(cumulative: Table, state: Array, action: Array, draw: Array) -> Int[Array, ""]:
    """A next state, taken from the table with a uniform draw."""
    edges = cumulative.transition[state, action]
    drawn = jnp.sum(draw * edges[-1] > edges)
    return jnp.minimum(drawn, edges.size - 1).astype(jnp.int32)


def _select(search: Search, tree: Tree, node: Array, normal: Float[Array, " actions"]) -> Int[Array, ""]:
    """Thompson sampling: the action with the best draw from the posterior of its mean return; new ones first."""
    child = tree.children[node]
    visits = jnp.maximum(tree.visits[child], 1.0)
    deviation = jnp.sqrt((search.prior**2 + tree.spread[child]) / (visits + 1.0) / visits)
    draw = tree.mean[child] + deviation * normal
    new = child < 0
    draw = jnp.where(jnp.any(new), jnp.where(new, normal, -jnp.inf), draw)
    return jnp.argmax(draw).astype(jnp.int32)


def _descend(
    table: Table, search: Search, tree: Tree, state: Array, depth: Array, new_node: Array, *, key: PRNGKeyArray
) -> Walk:
    """From the root down to the first action that was never taken, or to the end of the plan."""
    actions, longest = table.pays.shape[1], tree.visits.shape[0]
    key_select, key_state = jax.random.split(key)
    normal = jax.random.normal(key_select, (longest, actions))
    uniform = jax.random.uniform(key_state, (longest,))

    def step(walk: Walk) -> Walk:
        action = _select(search, tree, walk.node, normal[walk.length])
        child = tree.children[walk.node, action]
        following = _follow(table, walk.state, action, uniform[walk.length])
        return Walk(
            jnp.where(child < 0, new_node, child),
            following,
            walk.length + 1,
            walk.edges.at[walk.length].set(walk.node * actions + action),
            walk.paid.at[walk.length].set(table.pays[walk.state, action]),
            (child >= 0) & (table.goes_on[following] > 0),
        )

    zero, edges, paid = jnp.zeros((), jnp.int32), jnp.full(longest, -1, jnp.int32), jnp.zeros(longest)
    start = Walk(zero, state, zero, edges, paid, jnp.ones((), bool))
    return jax.lax.while_loop(lambda walk: walk.inside & (walk.length < depth), step, start)


def _random_return(
    table: Table, search: Search, state: Array, steps: Array, draws: Float[Array, "horizon 2"]
) -> Float[Array, ""]:
    """What random actions collect in so many steps."""
    actions = table.pays.shape[1]

    def step(time: Array, run: Run) -> Run:
        state, total, worth = run
        action = (draws[time, 0] * actions).astype(jnp.int32)
        total = total + worth * table.pays[state, action]
        state = _follow(table, state, action, draws[time, 1])
        return state, total, worth * search.discount * table.goes_on[state]

    start = (state, jnp.zeros(()), table.goes_on[state])
    return jax.lax.fori_loop(0, steps, step, start)[1]


def _backup(search: Search, tree: Tree, walk: Walk, value: Array, new_node: Array) -> Tree:
    """From the new node back to the root: each node learns the return from its own step on."""
    actions = tree.children.shape[1]

    def learn(carry: tuple[Tree, Array], step: Array) -> tuple[tuple[Tree, Array], None]:
        tree, value = carry
        taken = step < walk.length
        parent, action = walk.edges[step] // actions, walk.edges[step] % actions
        child = tree.children[parent, action]
        child = jnp.where(child < 0, new_node, child)
        value = jnp.where(taken, walk.paid[step] + search.discount * value, value)
        visits = tree.visits[child] + 1.0
        gap = value - tree.mean[child]
        grown = Tree(
            tree.children.at[parent, action].set(child),
            tree.visits.at[child].set(visits),
            tree.mean.at[child].add(gap / visits),
            tree.spread.at[child].add(gap * (gap - gap / visits)),
        )
        return (jax.tree.map(lambda new, old: jnp.where(taken, new, old), grown, tree), value), None

    return jax.lax.scan(learn, (tree, value), jnp.arange(walk.paid.size), reverse=True)[0][0]
