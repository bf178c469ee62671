"""The user's object: it is asked for actions, told what came of them, and keeps what was learned."""

import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from itertools import islice
from numbers import Integral, Real
from os import PathLike
from pathlib import Path
from typing import Any, NamedTuple, cast

import gymnasium as gym
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import PRNGKeyArray

from maxplore import checks, exploit, spaces, tasks
from maxplore.devices import DevicesError, counted, row
from maxplore.entry import short
from maxplore.episodes import longest
from maxplore.errors import InputError
from maxplore.exploit import FiniteExploitConfig, TaskPolicy
from maxplore.exploit.attempts import attempted, usual
from maxplore.exploit.real import TaskModel
from maxplore.explorers import Finite, FiniteAgent
from maxplore.explorers.agent import Agent
from maxplore.explorers.model_based import Lived, ModelAgent
from maxplore.history import History, Transition
from maxplore.interaction import check_env, flag, number, reset_env, step_env
from maxplore.methods import finite_explorer, model_based
from maxplore.models.ensemble import Ensemble
from maxplore.pieces import Tell
from maxplore.progress import Show, shown, solving
from maxplore.rewards import Reward, ends, every_reward, inner
from maxplore.runs import checkpoint
from maxplore.runs.plain import setting_from_plain, setting_to_plain, space_from_plain, space_to_plain
from maxplore.settings import in_force, overridden

MOST_TRANSITIONS = 10**8
"""Triples of state, action and next state that are written out at the most."""

SAVED = "explorer.npz"
"""The file of a saved explorer in its directory."""

LONGEST = 10**6
"""Steps that an episode may be planned for."""

MODELS = 3
"""Models for tasks that are kept, the latest ones of a D."""

FAR = 100
"""How many steps to plan for where nobody knows how long an episode is."""


class Experience(NamedTuple):
    """One step as the environment has it."""

    observation: Any
    action: Any
    next_observation: Any
    terminated: bool
    truncated: bool
    reward: float


Experiences = Iterable[Experience]


@dataclass(frozen=True)
class Summary:
    """What `explore` did."""

    steps: int
    episodes: int
    """Episodes begun."""
    coverage: float
    """Share of all state-action pairs tried; of real states, bins of a standard deviation visited in a dimension."""
    promise: float | None
    """Utility that plans promised when the last episode began (of real states, per step); None where there are none."""


def _whole(value: Any) -> bool:
    return not isinstance(value, bool) and isinstance(value, Integral)


def _path(directory: Any) -> Path:
    if not isinstance(directory, str | PathLike):
        raise InputError(f"directory is {short(directory)}, expected a path")
    return Path(cast(str, directory))


def _real(value: Any) -> bool:
    return not isinstance(value, bool) and isinstance(value, Real)


@dataclass(frozen=True)
class Model:
    """The ensemble of an explorer, asked in the environment's own units."""

    ensemble: Ensemble[Any]
    """As it is inside: numbers count from 0, real actions are in [-1, 1]."""
    _observations: spaces.Codec
    _actions: spaces.Codec

    @property
    def size(self) -> int:
        """How many members it has."""
        return self.ensemble.size

    def predict(self, observations: Any, actions: Any) -> Any:
        """What every member expects next: mean and variance, `[members, batch, dims]`; of Discrete states,
        probabilities `[members, batch, states]`."""
        states = self._observations.batch("observations", observations)
        return self.ensemble.predict(states, self._actions.batch("actions", actions))


class Explorer:
    """Explores an environment with no reward at all.

    `method` and `preset` name a row of `maxplore.methods`; `horizon` is the length of an episode where it is known
    (`explore` asks the environment), and any setting of the method may be given by name. A `reward`, times
    `reward_weight`, is added to the utility; without one, exploration is pure. On more than one of JAX's `devices` the
    members of the ensemble are dealt out to them, which changes nothing but rounding.

    >>> env = gym.make("FrozenLake-v1", is_slippery=False)
    >>> explorer = Explorer(env.observation_space, env.action_space, members=3)
    >>> explorer.tell(0, 1, 4)
    >>> explorer.ask(4) in env.action_space
    True
    """

    def __init__(
        self,
        observation_space: gym.Space[Any],
        action_space: gym.Space[Any],
        *,
        method: str = "max",
        preset: str = "fast",
        seed: int = 0,
        horizon: int | None = None,
        reward: Reward | None = None,
        reward_weight: float | None = None,
        devices: int = 1,
        **settings: Any,
    ) -> None:
        if horizon is not None and not (_whole(horizon) and 1 <= horizon <= LONGEST):
            raise InputError(
                f"horizon is {horizon!r}, expected at least 1 and at most {LONGEST}, or None if it is not known"
            )
        if not (_whole(seed) and 0 <= seed < 2**32):
            raise InputError(f"seed is {seed!r}, expected a whole number from 0 to {2**32 - 1}")
        if (reward is None) != (reward_weight is None):
            given, missing = ("reward", "reward_weight") if reward_weight is None else ("reward_weight", "reward")
            raise InputError(f"{given} is given without {missing}, expected both (a weight of 0 is pure exploration)")
        weight = 0.0 if reward_weight is None else reward_weight
        if not (_real(weight) and math.isfinite(weight)):
            raise InputError(f"reward_weight is {reward_weight!r}, expected a finite number")
        self._made = {"method": method, "preset": preset, "seed": int(seed), "horizon": horizon}
        self._settings = settings
        self._paid = None if reward_weight is None else float(weight)
        self._actions = spaces.actions(action_space)
        self._observations = spaces.observations(observation_space, numbered=self._actions.entry.count is not None)
        self._spaces = (observation_space, action_space)
        self._seed = int(seed)
        self._next: np.ndarray | None = None
        self._episode_over = True
        self._explored = False
        self._most: float | None = None
        key, states, actions = jax.random.key(int(seed)), self._observations.entry, self._actions.entry
        paid = None if reward is None else inner(reward, self._observations, self._actions)
        self._fitted: tuple[TaskModel, ...] = ()
        self._agent: Agent
        if states.count is not None and actions.count is not None:
            if counted(devices) > 1:
                raise DevicesError(
                    f"devices is {devices}, expected 1: the small ensembles of Discrete spaces need no more"
                )
            if states.count**2 * actions.count > MOST_TRANSITIONS:
                raise InputError(
                    f"{states.count} states and {actions.count} actions are too many to write out, expected at most "
                    f"{MOST_TRANSITIONS:.0e} transitions: give maxplore a Box of features (TransformObservation)"
                )
            world = Finite(states.count, actions.count, horizon or FAR, horizon is not None)
            external = None if paid is None else weight * every_reward(paid, states.count, actions.count)
            self._agent = FiniteAgent(finite_explorer(method, preset, settings), world, key=key, external=external)
        else:
            config = model_based(method, preset, settings, states, actions)
            if paid is not None:
                config = config.with_reward(paid, float(weight))
            mesh = row(devices, config.model.members)
            self._agent = ModelAgent(config, states, actions, key=key, space=self._observations.bounds, mesh=mesh)
            if horizon is not None:
                self._agent.learn_horizon(horizon)

    @property
    def observation_space(self) -> gym.Space[Any]:
        """What observations look like."""
        return self._spaces[0]

    @property
    def action_space(self) -> gym.Space[Any]:
        """What actions look like."""
        return self._spaces[1]

    @property
    def history(self) -> History:
        """D: every transition told so far, in maxplore's own arrays."""
        return self._agent.history

    @property
    def steps(self) -> int:
        """Transitions told so far."""
        return self._agent.steps

    def ask(self, observation: Any) -> Any:
        """An action to take after this observation, as the environment wants it."""
        state = self._observations.inward("observation", observation)
        self._notice_reset(state)
        return self._actions.outward(self._agent.ask(state))

    def tell(
        self,
        observation: Any,
        action: Any,
        next_observation: Any,
        *,
        terminated: bool = False,
        truncated: bool = False,
        reward: float = 0.0,
    ) -> None:
        """Learn from a transition, wherever it comes from. Pure explorers take no notice of the reward."""
        state = self._observations.inward("observation", observation)
        move = self._actions.inward("action", action)
        following = self._observations.inward("next_observation", next_observation)
        ended, cut = flag("terminated", terminated), flag("truncated", truncated)
        gained = number(reward, finite=self._agent.minds_reward)
        self._notice_reset(state)
        row = (jnp.asarray(x) for x in (state, move, following, ended, cut))
        self._agent.tell(Transition(*row), gained)
        self._next, self._episode_over = following, ended or cut

    def meet(self, env: gym.Env[Any, Any]) -> None:
        """Note how long this environment's episodes are. An `InputError` if its spaces are not the explorer's."""
        check_env(env)
        for name, own, other in zip(
            ("observation_space", "action_space"), self._spaces, (env.observation_space, env.action_space), strict=True
        ):
            if own != other:
                raise InputError(f"the environment's {name} is {other}, expected {own}, the explorer's")
        limit = env.spec.max_episode_steps if env.spec is not None else None
        limit = limit or getattr(env.unwrapped, "horizon", None)  # an environment that cuts its own episodes off
        if isinstance(limit, int) and limit > 0:
            self._agent.learn_horizon(limit)

    def begin(self, observation: Any) -> float | None:
        """Another episode begins here. What plans promise from here on, if any do."""
        state = self._observations.inward("observation", observation)
        self._agent.begin()
        self._next = None
        promise = self._agent.promise(state)
        if promise is not None:
            self._most = promise if self._most is None else max(self._most, promise)
        return promise

    def check_sating(self, until_utility: float) -> None:
        """An `InputError` if exploration cannot end at this share of the most that plans promised."""
        if not (_real(until_utility) and 0 <= until_utility < 1):
            raise InputError(f"until_utility is {until_utility}, expected a share: at least 0 and below 1")
        if until_utility and not self._agent.promises:
            raise InputError("until_utility is given, expected none: this method's plans promise nothing")
        if until_utility and self._paid:
            raise InputError("until_utility is given, expected none: with a reward mixed in, utility need not fall")

    def sated(self, promise: float | None, until_utility: float) -> bool:
        """Whether plans promise less than this share of the most that they ever did."""
        return bool(until_utility) and promise is not None and promise < until_utility * (self._most or 0.0)

    def explore(
        self,
        env: gym.Env[Any, Any],
        steps: int,
        *,
        until_utility: float = 0.0,
        progress: bool | None = None,
        watch: Callable[[dict[str, float]], None] | None = None,
    ) -> Summary:
        """Explore an environment for so many steps.

        A bar shows how it goes (`progress`; by default if there is a terminal), and `watch` is called with the figures
        of every round of fitting and planning, as they come.

        It ends before if, at the beginning of an episode, what the latest plan promised is below `until_utility` times
        the most that any plan promised. An episode that is cut off at the end is begun anew by the next call.
        """
        if not (_whole(steps) and steps >= 0):
            raise InputError(f"steps is {steps!r}, expected a whole number of at least 0")
        if progress is not None:
            flag("progress", progress)
        if not (watch is None or callable(watch)):
            raise InputError(f"watch is {watch!r}, expected a function of the figures of a round")
        self.check_sating(until_utility)
        self.meet(env)
        with shown(steps, wanted=progress, watch=watch, known=self._agent.latest) as show:
            return self._explore(env, steps, until_utility, show)

    def _explore(self, env: gym.Env[Any, Any], steps: int, until_utility: float, show: Show) -> Summary:
        episodes, done, promise = 0, 0, None
        while done < steps:
            observation = reset_env(env, None if self._explored else self._seed)
            self._explored = True
            promise = self.begin(observation)
            episodes += 1
            if self.sated(promise, until_utility):
                break
            over = False
            while done < steps and not over:
                action = self.ask(observation)
                following, reward, ended, cut = step_env(env, action, learns_reward=self.minds_reward)
                self.tell(observation, action, following, terminated=ended, truncated=cut, reward=reward)
                observation, over, done = following, ended or cut, done + 1
                show(done, self._agent.latest)
        return Summary(done, episodes, self.coverage, promise)

    @property
    def coverage(self) -> float:
        """How much was seen, as in `Summary`."""
        return self._agent.coverage

    @property
    def figures(self) -> list[dict[str, float]]:
        """How learning went, one row for each round of fitting and planning. Empty for Discrete spaces."""
        return self._agent.figures

    @property
    def minds_reward(self) -> bool:
        """Whether it learns from the rewards that it is told of."""
        return self._agent.minds_reward

    @property
    def latest(self) -> dict[str, float] | None:
        """The figures of the newest round; None before the first."""
        return self._agent.latest

    @property
    def settings(self) -> dict[str, Any]:
        """Every setting in force, by name, in plain numbers and words."""
        return in_force(self._agent.settings)

    @property
    def model(self) -> Model:
        """The dynamics as learned so far, by an ensemble that knows what it does not know."""
        return Model(self._agent.model, self._observations, self._actions)

    @property
    def horizon(self) -> int:
        """Steps of an episode, at the most: as it was given, or learned of the environment, or told by D."""
        return self._agent.horizon or longest(self.history)

    def utility(self, observations: Any, actions: Any) -> np.ndarray:
        """How novel it would be to take these actions there: one number for each row."""
        states = self._observations.batch("observations", observations)
        return self._agent.utility(states, self._actions.batch("actions", actions))

    def survey(self) -> dict[str, np.ndarray]:
        """How sure the models are, and where, as tables by name; none as long as there are no models.

        Of real states: `states` that were asked about, half of them from D, the others anywhere in its range; their
        `utility` in nats, the mean over a few actions; `reliability`, how often the truth lay in the middle of what was
        expected beside how often it should. Of Discrete ones: the utility of all `pairs`, `[states, actions]`.
        """
        return self._agent.survey()

    def exploit(
        self,
        reward: Reward | str,
        terminated: Reward | None = None,
        *,
        horizon: int | None = None,
        seed: int = 0,
        progress: bool | None = None,
        watch: Tell | None = None,
        **settings: Any,
    ) -> TaskPolicy:
        """A policy for a task, from D alone: a model is fitted for it at leisure, and the task solved in imagination.

        The `reward(state, action, next_state)` is a function of one transition in `jax.numpy`, in the environment's own
        units, or the name of one of `maxplore.tasks`; `terminated`, of the same form, tells which transitions end an
        episode, besides those that were seen to end one. Episodes are `horizon` steps long, or as long as is known. Any
        setting of `ExploitConfig` (`FiniteExploitConfig` for Discrete spaces) may be given by name. The model is kept:
        as long as D and its settings stay, the next task is solved in it, with the same outcome as if fitted anew.

        A bar shows how it goes (`progress`; by default if there is a terminal), and `watch` is called with what is done
        (`fit`, `solve`, `forecast`), how much of it, of how much (0 if that is not known), and the return of an episode
        that is expected so far, or None.
        """
        with solving(wanted=progress, watch=watch) as tell:
            return self._exploit(reward, terminated, horizon, seed, settings, tell)

    def _exploit(
        self,
        reward: Reward | str,
        terminated: Reward | None,
        horizon: int | None,
        seed: int,
        settings: dict[str, Any],
        tell: Tell,
    ) -> TaskPolicy:
        self.check_task(seed)
        seed = int(seed)
        steps = self.horizon if horizon is None else checks.counted("horizon", horizon)
        observations, actions = self._observations, self._actions
        task = tasks.named(reward, observations.entry, actions.entry) if isinstance(reward, str) else reward
        paid = inner(task, observations, actions)
        over = None if terminated is None else ends(terminated, observations, actions)
        states, count = observations.entry.count, actions.entry.count
        if states is not None and count is not None:
            config = overridden(FiniteExploitConfig(), settings)
            tables = every_reward(paid, states, count), None if over is None else every_reward(over, states, count)
            world, (key_solve, key_act) = Finite(states, count, steps), self._task_keys(seed)
            acting, report = exploit.finite.solve(self.history, world, *tables, config, key=key_solve, tell=tell)
            return TaskPolicy(acting, report, observations, actions, paid, over, seed=seed, key=key_act)
        config = exploit.real.configured(observations.entry, actions.entry, settings)
        problem = exploit.real.Problem(self.history, paid, over, steps, observations.bounds)

        def solved(own: int) -> TaskPolicy:
            key_solve, key_act = self._task_keys(own)
            known = self._fitted
            given: dict[str, Any] = {"fitted": known, "key": key_solve, "tell": tell}
            acting, report, model = exploit.real.solve(problem, config, seed=own, **given)
            self._keep(model)
            return TaskPolicy(acting, report, observations, actions, paid, over, seed=own, key=key_act)

        return attempted(solved, seed, config.attempts, lambda: usual(problem))

    def task_model(self, *, seed: int = 0, **settings: Any) -> TaskModel:
        """The model that `exploit` solves tasks in where states are real, with this seed and these settings: fitted now
        unless it is there already. Of several `attempts`, that of the first."""
        self.check_task(seed)
        seed = int(seed)
        observations, actions = self._observations, self._actions
        if observations.entry.count is not None:
            raise InputError("there is no model of this kind where states are Discrete, expected a Box of them")
        config = exploit.real.configured(observations.entry, actions.entry, settings)
        (key_solve, _), known, bounds = self._task_keys(seed), self._fitted, observations.bounds
        model = exploit.real.modelled(self.history, bounds, config, seed=seed, fitted=known, key=key_solve)
        self._keep(model)
        return model

    def _task_keys(self, seed: int) -> tuple[PRNGKeyArray, PRNGKeyArray]:
        """To solve a task with, and to act with."""
        key_solve, key_act = jax.random.split(jax.random.fold_in(jax.random.key(self._seed), seed))
        return key_solve, key_act

    def _keep(self, model: TaskModel) -> None:
        """For tasks to come, with the latest others of the same D."""
        others = (other for other in self._fitted if other is not model and other.steps == model.steps)
        self._fitted = (model, *others)[:MODELS]

    def check_task(self, seed: Any) -> None:
        """An `InputError` if there is nothing to solve a task from, or the seed is none."""
        if self.steps == 0:
            raise InputError("the explorer has seen no transition, expected at least one: call explore or tell first")
        if not (_whole(seed) and 0 <= seed < 2**32):
            raise InputError(f"seed is {seed!r}, expected a whole number from 0 to {2**32 - 1}")

    def save(self, directory: str | Path) -> None:
        """Keep all of it (D, models, policy, figures) in `directory`, as arrays and plain JSON, for `maxplore.load`.

        A reward is a function, which is not kept: give it to `load` again. The directory of a run is refused: it has a
        record of its own, which is what `load` would go by.
        """
        from maxplore.runs.directory import Folder, make_directory

        folder = Folder(_path(directory))
        make_directory(folder.path)
        if folder.is_run and folder.record.exists() and self._paid is None:  # with a reward, `load` passes it by
            raise InputError(f"{directory} is the directory of a run, expected another one: what is there would win")
        self.save_file(Path(directory) / SAVED)

    def save_file(self, path: Path, *, known: str | None = None) -> None:
        """`save`, in a file of this name; of a run, without D but with a digest of what is `known`."""
        plain, groups = self._agent.frozen(with_history=known is None)
        settings = {name: setting_to_plain(name, value) for name, value in self._settings.items()}
        about = {
            "kind": "explorer",
            "known": known,
            "observation_space": space_to_plain(self._spaces[0]),
            "action_space": space_to_plain(self._spaces[1]),
            "made": self._made,
            "settings": settings,
            "reward_weight": self._paid,
            "explored": self._explored,
            "episode_over": self._episode_over,
            "most": self._most,
            "agent": plain,
        }
        groups["next"] = () if self._next is None else (self._next,)
        checkpoint.write(path, about, groups)

    def _adopt(self, lived: Lived) -> None:
        """Know what was lived through in a compiled run, with the key of this explorer's seed."""
        assert isinstance(self._agent, ModelAgent)
        self._agent.adopt(lived)
        last = self._agent.history[jnp.int32(self.steps - 1)]
        self._explored, self._episode_over = True, bool(last.terminated | last.truncated)
        self._next = np.asarray(last.next_state)

    def _thaw(self, file: checkpoint.Checkpoint, lived: Experiences | None) -> None:
        """Be what was saved; if that was without D, it is what was `lived`."""

        def filled(group: str, like: Any) -> Any:
            if group != "history" or lived is None:
                return file.filled(group, like)
            return self._rows(islice(lived, like.terminated.shape[0]), like)

        about = file.about
        self._agent.thaw(about["agent"], filled)
        self._explored, self._episode_over, self._most = about["explored"], about["episode_over"], about["most"]
        if file.has("next"):
            entry = self._observations.entry
            self._next = np.asarray(file.filled("next", (jax.ShapeDtypeStruct(entry.shape, entry.dtype),))[0])

    def _rows(self, lived: Experiences, like: Transition) -> Transition:
        """What was lived, in the types of `like`."""
        rows = [
            (
                self._observations.inward("observation", step.observation),
                self._actions.inward("action", step.action),
                self._observations.inward("next_observation", step.next_observation),
                step.terminated,
                step.truncated,
            )
            for step in lived
        ]
        if len(rows) != len(like.terminated):
            raise InputError(f"{len(rows)} steps are on record, expected {len(like.terminated)}")
        columns = (
            np.asarray(column, own.dtype)
            for column, own in zip(zip(*rows, strict=True), jax.tree.leaves(like), strict=True)
        )
        return Transition(*map(jnp.asarray, columns))

    def _notice_reset(self, state: np.ndarray) -> None:
        """Begin another episode if somebody has reset the environment, and told nobody."""
        if not self._episode_over and self._next is not None and not np.array_equal(state, self._next):
            self._agent.begin()


def load(directory: str | Path, *, reward: Reward | None = None, devices: int = 1) -> Explorer:
    """The explorer that was saved in `directory`, or that of a run there; it goes on as if it had never been away.

    One that had a `reward` needs the same one again. It may go on with another number of `devices`.
    """
    from maxplore.runs.directory import Folder
    from maxplore.runs.reliving import restored

    if Folder(_path(directory)).is_run and reward is None:
        return restored(Path(directory), devices=devices)
    return load_file(Path(directory) / SAVED, reward=reward, devices=devices)


def load_file(
    path: Path,
    *,
    reward: Reward | None = None,
    lived: Experiences | None = None,
    known: str | None = None,
    devices: int = 1,
) -> Explorer:
    """`load`, from a file of this name; of a run, D is what was `lived`, and the digest must be of what is `known`."""
    file = checkpoint.Checkpoint(path)
    about = file.about
    if about.get("known") != known:
        raise file.damaged("it is of another run, or of other steps")
    try:
        spaces_ = [space_from_plain(about[name]) for name in ("observation_space", "action_space")]
        made, weight = about["made"], about["reward_weight"]
        settings = {name: setting_from_plain(value) for name, value in about["settings"].items()}
        named = {name: made[name] for name in ("method", "preset", "seed", "horizon")}
    except InputError:
        raise
    except Exception as error:
        raise file.damaged(f"{type(error).__name__}: {error}") from None
    if (weight is None) != (reward is None):
        wanted = "none: it was made without" if weight is None else "the reward that it was made with"
        raise InputError(f"reward is {'' if weight is None else 'not '}given, expected {wanted}")
    try:
        explorer = Explorer(*spaces_, **named, reward=reward, reward_weight=weight, devices=devices, **settings)
        explorer._thaw(file, lived)  # pyright: ignore[reportPrivateUsage]
    except InputError:
        raise
    except Exception as error:  # a file from anywhere can break a reader in many ways
        raise file.damaged(f"{type(error).__name__}: {error}") from None
    return explorer
