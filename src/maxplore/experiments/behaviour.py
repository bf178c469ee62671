"""The paper's supplementary figures: how MAX goes about exploring a Chain."""

from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float, Int, PRNGKeyArray

from maxplore.compiling import compiled
from maxplore.envs.chain import Chain
from maxplore.experiments.exploration import MASTER, Line, explored_shares
from maxplore.experiments.spec import Asked, Claim, Judge, Measured, Say, quartiles, resized
from maxplore.explorers import Finite, MaxExplorer, OracleExplorer
from maxplore.explorers.loop import step_keys
from maxplore.explorers.max import MaxMind, tabulate
from maxplore.history import Transition


class Episode(NamedTuple):
    """What happened in one episode, step by step, and what MAX thought of the chain before it."""

    state: Int[Array, " steps"]
    action: Int[Array, " steps"]
    novel: Bool[Array, " steps"]
    """Whether this pair had never been tried before."""
    value: Float[Array, " steps"]
    """Utility that the plan promised, in nats."""
    utility: Float[Array, "states 2"]
    tried: Bool[Array, "states 2"]
    accuracy: Float[Array, " members"]
    """Share of all pairs whose next state each member knows, after the episode."""


@dataclass(frozen=True)
class Behaviour:
    """One exemplary run, and the accuracy of every member over several."""

    title: str = "What MAX does on a Chain (appendix C.4)"
    explorer: MaxExplorer = MaxExplorer()  # noqa: RUF009  (immutable)
    length: int = 50
    seeds: int = 5
    episodes: int = 12

    @property
    def claims(self) -> tuple[Claim, ...]:
        return CLAIMS

    def at(self, asked: Asked) -> "Behaviour":
        figure = replace(self, seeds=1, episodes=6, length=10) if asked.preset == "smoke" else self
        return resized(figure, asked, ("seeds", "episodes"))

    def run(self, folder: Path, say: Say) -> Measured:
        seeds, episodes = self.seeds, self.episodes
        keys = jax.random.split(jax.random.key(MASTER), seeds)
        runs: Episode = compiled(lambda keys: jax.lax.map(lambda key: self.watch(key, episodes), keys))(keys)
        runs = jax.tree.map(np.asarray, runs)
        one: Episode = jax.tree.map(lambda x: x[0], runs)
        accuracy = np.moveaxis(np.asarray(runs.accuracy), 2, 0)  # [members, seeds, episodes]
        complete = [int(e) for e in range(episodes) if one.novel[e].any()]
        say(f"the exemplary run found its last new pair in episode {complete[-1] + 1}")
        swapped = np.asarray(Chain.random(self.length, key=jax.random.split(keys[0])[0]).swapped)
        return Measured(
            {"explorer": repr(self.explorer), "length": str(self.length)},
            [claim.judged((runs, self.explorer.config.warm_up)) for claim in CLAIMS],
            {f"accuracy of member {n + 1}": quartiles(values) for n, values in enumerate(accuracy)}
            | {"oracle": quartiles(explored_shares(Line(OracleExplorer(), self.length), seeds, episodes))},
            {
                "swapped": swapped.tolist(),
                "run": [
                    {
                        "episode": e + 1,
                        "state": one.state[e].tolist(),
                        "action": one.action[e].tolist(),
                        "novel": one.novel[e].tolist(),
                        "value": one.value[e].round(6).tolist(),
                        "utility": one.utility[e].round(6).tolist(),
                        "tried": one.tried[e].tolist(),
                    }
                    # One more than the last that found anything: its table is what came after.
                    for e in range(min(complete[-1] + 2, episodes))
                ],
            },
        )

    def watch(self, key: PRNGKeyArray, episodes: int) -> Episode:
        """The same run as `explorers.run`, with everything written down."""
        key_chain, key_all = jax.random.split(key)
        key_init, key_run = jax.random.split(key_all)
        chain = Chain.random(self.length, key=key_chain)
        world = Finite(chain.length, 2, chain.horizon)
        explorer = self.explorer
        states, actions = jnp.meshgrid(jnp.arange(chain.length), jnp.arange(2), indexing="ij")
        truth = jax.vmap(jax.vmap(lambda s, a: chain.step(s, a, key=key)[0]))(states, actions)

        def step(carry: tuple[MaxMind, Array], number: Array) -> tuple[tuple[MaxMind, Array], tuple[Array, ...]]:
            mind, state = carry
            key_act, key_observe, key_env = step_keys(key_run, number)
            value = jnp.max(explorer.values(world, mind, state, key=key_act))
            action = explorer.act(world, mind, state, key=key_act)
            following, reward = chain.step(state, action, key=key_env)
            last = number % world.horizon == world.horizon - 1
            novel = ~mind.memory.visited[state, action]
            transition = Transition(state, action, following, jnp.zeros((), bool), last)
            mind = explorer.observe(world, mind, transition, reward, key=key_observe)
            return (mind, following), (state, action, novel, value)

        def episode(mind: MaxMind, number: Array) -> tuple[MaxMind, Episode]:
            utility, tried = tabulate(mind).pays, mind.memory.visited
            steps = number * world.horizon + jnp.arange(world.horizon)
            (mind, _), (state, action, novel, value) = jax.lax.scan(step, (mind, chain.reset()), steps)
            right = jnp.argmax(mind.ensemble.table(), axis=-1) == truth[None]
            accuracy = jnp.mean(right, axis=(1, 2))
            return mind, Episode(state, action, novel, value, utility, tried, accuracy)

        return jax.lax.scan(episode, explorer.init(world, key=key_init), jnp.arange(episodes))[1]

    def draw(self, summary: dict[str, Any]) -> Any:
        import matplotlib.pyplot as plt

        run = summary["run"]
        found = [episode for episode in run if any(episode["novel"])]
        figure = plt.figure(figsize=(13, 11), layout="constrained")
        grid = figure.add_gridspec(5, 2, height_ratios=(2.2, 1, 1, 1, 0.08))
        warm_up = self.explorer.config.warm_up
        shown = [episode for episode in found if episode["episode"] > warm_up][:2] or found[:1]
        _draw_values(figure.add_subplot(grid[0, 0]), shown)
        _draw_accuracy(figure.add_subplot(grid[0, 1]), summary["curves"], warm_up)
        # The last two episodes that found anything, and how things stood after them.
        last = len(found) and run.index(found[-1])
        rows = [index for index in (last - 1, last, last + 1) if 0 <= index < len(run)]
        for place, index in enumerate(rows):
            path = run[index] if index <= last else None
            image = _draw_chain(figure.add_subplot(grid[1 + place, :]), summary["swapped"], run[index], path)
            if place == len(rows) - 1:
                bar = figure.add_subplot(grid[4, :])
                figure.colorbar(image, cax=bar, orientation="horizontal", label="utility in nats")
        figure.suptitle(self.title)
        return figure


def _learned(measured: tuple[Episode, int]) -> tuple[float, bool]:
    known = (measured[0].accuracy >= 1.0).all(axis=2)  # [seeds, episodes]
    needed = np.where(known.any(axis=1), known.argmax(axis=1) + 1.0, np.inf)
    return float(np.median(needed)), bool(np.median(needed) < 20)


def _correlates(measured: tuple[Episode, int]) -> tuple[float, bool]:
    """Where in the order of all steps of its own episode the median novel one is."""
    episodes, warm_up = measured
    ranks: list[float] = []
    for novel, value in zip(
        np.concatenate(list(episodes.novel[:, warm_up:])),
        np.concatenate(list(episodes.value[:, warm_up:])),
        strict=True,
    ):
        ranks.extend((value.argsort().argsort() / max(value.size - 1, 1))[novel])
    median = float(np.median(ranks)) if ranks else np.nan
    return median, median > 0.5


CLAIMS = (
    Claim(
        "episodes until every member knows every transition (median)", "less than 20", Judge(_learned, "less than 20")
    ),
    Claim(
        "rank of plan utility at novel steps within their episode: median above 0.5",
        "high",
        Judge(_correlates, "above 0.5"),
    ),
)


def _draw_values(panel: Any, episodes: list[dict[str, Any]]) -> None:
    for number, episode in enumerate(episodes):
        value, novel = np.array(episode["value"]), np.array(episode["novel"])
        steps = np.arange(1, len(value) + 1)
        panel.semilogy(steps, value, color=f"C{number}", linewidth=1.4, label=f"episode {episode['episode']}")
        panel.plot(steps[novel], value[novel], ".", color="red", label="novel transition" if number == 0 else None)
    panel.set(xlabel="step", ylabel="utility of the plan (nats)", title="Utility of the exploration policy")
    panel.legend(frameon=False, fontsize=8)


def _draw_accuracy(panel: Any, curves: dict[str, Any], warm_up: int) -> None:
    for number, (label, curve) in enumerate(curves.items()):
        if label == "oracle":  # it knows what it has tried
            panel.plot(curve["x"], curve["median"], "--", color="black", linewidth=1.1, label=label)
            continue
        panel.plot(curve["x"], curve["median"], color=f"C{number}", label=label.removeprefix("accuracy of "))
        panel.fill_between(curve["x"], curve["p25"], curve["p75"], color=f"C{number}", alpha=0.15, linewidth=0)
    panel.axvline(warm_up, color="grey", linestyle=":", linewidth=1)
    panel.set(xlabel="episode", ylabel="share of pairs known", ylim=(0, 1.02), title="Accuracy of each member")
    panel.legend(frameon=False, fontsize=8, loc="lower right")


def _draw_chain(panel: Any, swapped: list[bool], before: dict[str, Any], path: dict[str, Any] | None) -> Any:
    """Each pair is an arc to its neighbour (right above, left below), coloured by utility; a ring: never tried."""
    import matplotlib.pyplot as plt
    from matplotlib.cm import ScalarMappable
    from matplotlib.colors import LogNorm

    utility, tried = np.array(before["utility"]), np.array(before["tried"])
    image = ScalarMappable(LogNorm(1e-4, 2.0, clip=True), plt.get_cmap("viridis_r"))
    turn = np.linspace(0, np.pi, 20)
    for state in range(len(utility)):
        for action in (0, 1):
            right = (action == 1) != swapped[state]
            way, color = (1 if right else -1), image.to_rgba(max(utility[state, action], 1e-4))
            x = state + way * (1 - np.cos(turn)) * 0.42
            y = way * np.sin(turn) * 0.5
            panel.plot(x, y, color=color, linewidth=2.2)
            face, marker = (color, ">" if right else "<") if tried[state, action] else ("white", "o")
            panel.plot(x[-3], y[-3], marker, color=color, markerfacecolor=face, markersize=4.5)
    panel.scatter(np.arange(len(utility)), np.zeros(len(utility)), s=10, color="black", zorder=3)
    title = f"Before episode {before['episode']}" if path else f"After episode {before['episode'] - 1}"
    if path:
        steps, states = np.arange(len(path["state"])), np.array(path["state"])
        panel.plot(states, -0.8 - 1.2 * steps / len(steps), ":", color="grey", linewidth=1)
        novel = np.array(path["novel"])
        panel.plot(states[novel], -0.8 - 1.2 * steps[novel] / len(steps), ".", color="red", markersize=4)
        title += "; its way, downwards in time (red: novel)"
    panel.set(ylim=(-2.1 if path else -0.8, 0.8), xlim=(-1.2, len(utility) + 0.2), yticks=[], xlabel="state")
    panel.set_title(title + "; arcs above go right, below left; open ring: never tried", fontsize=9)
    return image
