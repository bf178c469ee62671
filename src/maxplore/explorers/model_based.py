"""Algorithm 1 for real states: warm up, then again and again fit the ensemble, solve the exploration MDP, act."""

import math
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax.sharding import Mesh
from jaxtyping import Array, Float, Int, PRNGKeyArray, Shaped

from maxplore import checks, devices
from maxplore.compiling import compiled
from maxplore.entry import Entry
from maxplore.errors import InputError
from maxplore.explorers.agent import Agent, Filled
from maxplore.explorers.dreams import Dream, boldest, dream_mdp, dreamer, records, scheduled
from maxplore.explorers.steps import StepKeys, choice_keys, follow
from maxplore.explorers.survey import LEVELS, anything, probes, reliability
from maxplore.history import History, Transition
from maxplore.mdp import ExplorationMDP
from maxplore.models import FitConfig, GaussianConfig, GaussianEnsemble, fit
from maxplore.models.adam import Moments
from maxplore.models.ensemble import Metrics
from maxplore.models.fit import FitReport
from maxplore.rewards import Inner
from maxplore.solvers import Gradient, Policy, Sac, SolveInfo, Solver
from maxplore.utilities import JensenRenyi, Task, WithReward
from maxplore.utilities.base import Utility

NEVER = 2**62
"""More rounds than there will ever be."""


@dataclass(frozen=True)
class ModelBasedConfig:
    """How to explore with a model."""

    model: GaussianConfig = GaussianConfig()
    """The ensemble. Its termination head is added once an episode was seen to end early."""
    fit: FitConfig = FitConfig(epochs=50, held_out=0.1)
    """How the ensemble is trained; `from_scratch` is decided by `fresh_every` and `fresh_growth`."""
    utility: Utility | None = JensenRenyi()
    """What the exploration MDP pays for; None is random actions for ever."""
    solver: Solver = Gradient()
    """How the exploration MDP is solved."""
    warm_up: int = 50
    """Random steps before the first fit; what was told from elsewhere counts."""
    plan_every: int = 25
    """Steps between two rounds of fitting and solving."""
    fresh_every: int = 1
    """Every so many rounds the ensemble is drawn anew, otherwise it goes on from where it stands."""
    fresh_growth: float = 0.0
    """And not before rounds have grown by this share since the last time: with 0.25, after round 400 not before 500.
    What was learned from a small D stays in the way of more; with a large D to begin again costs more than it mends."""
    solve_at_reset: bool = True
    """Whether a new episode gets a new solve, though the model is the same."""
    dither: float = 0.0
    """Share of the numbers of actions that are drawn at random in place of the plan's (of numbered actions, share of
    the actions): so that D tells apart what each of them does, and knows of forces between all and nothing."""
    rest: float = 0.0
    """Share of the stretches of 25 steps in which one action is drawn at random and held, whatever the plan: D then
    knows of forces that stay, and of what comes to rest under them."""
    dreams: float = 0.0
    """Share of the stretches, to a thousandth and evenly spread, that test a dream in place of looking for novelty: one
    number of the state as large or as small as can be, the one whose policy promises most beyond anything in D. Where
    all members err alike, novelty never goes, and the policies of tasks do. A dream is followed as it is, without
    `dither` or `rest`, and leaves the range of D by a tenth at the most, whatever the `margin`."""
    dream_steps: int = 100
    """Steps of such a stretch: a dream is followed for so long, resets or not. The length of an episode, or a part of
    it, does best: a dream begins where its stretch does."""
    margin: float = 1.0
    """How far imagination may leave the range of D, as a share of its extent, within the bounds of the observation
    space; inf is as far as it likes, whatever the bounds."""

    def __post_init__(self) -> None:
        checks.at_least(1, self, "warm_up", "plan_every", "fresh_every", "dream_steps")
        checks.not_negative(self, "fresh_growth")
        checks.share(self, "dither", "rest", "dreams")
        if not self.margin >= 0:
            raise InputError(f"margin is {self.margin}, expected 0 or more")
        if not self.fit.from_scratch:
            raise InputError(
                "from_scratch is False, expected True: a model that is drawn anew less often has fresh_every"
            )

    def fresh_rounds(self) -> Iterator[int]:
        """The rounds, counted from 0, in which the ensemble is drawn anew.

        >>> from itertools import islice
        >>> list(islice(ModelBasedConfig(fresh_every=2, fresh_growth=0.5).fresh_rounds(), 6))
        [0, 2, 4, 6, 9, 14]
        """
        last = 0
        while True:
            yield last
            last += max(self.fresh_every, math.ceil(min(self.fresh_growth * last, NEVER)))

    def draws_anew(self, number: int) -> bool:
        """Whether the round of this number is one of them."""
        if self.fresh_growth == 0:
            return number % self.fresh_every == 0
        return next(fresh for fresh in self.fresh_rounds() if fresh >= number) == number

    def with_reward(self, reward: Inner, weight: float) -> "ModelBasedConfig":
        """The same with so much of a reward added to the utility."""
        if self.utility is None:
            raise InputError("reward is given, expected none: random actions look for nothing")
        return replace(self, utility=WithReward(self.utility, Task(reward), weight))


class Round(NamedTuple):
    """What came of one round: the model's report, and the solver's (a blank one if it went by in a dream)."""

    step: int
    fit: FitReport
    solve: SolveInfo
    calibration: float
    """Share of what happened that lay in the middle 80% of what the ensemble expected, on rows held out."""
    coverage: float


class Reports(NamedTuple):
    """What came of all rounds of a compiled run, along a leading axis."""

    fit: FitReport
    solve: SolveInfo
    """Of the latest solve in each; blank where there was none."""
    calibration: Float[Array, "*rounds"]


class Learned(NamedTuple):
    """What a compiled run has learned."""

    ensemble: GaussianEnsemble
    moments: Moments
    policy: Policy
    memory: Any
    solved: Int[Array, ""]
    """The step of the latest solve."""
    reports: Reports
    dream: Dream | None = None
    dreamt: Int[Array, ""] | None = None
    """The number of the stretch that the latest dream was for, -1 if there was none yet; None if nobody dreams."""


class Lived(NamedTuple):
    """A compiled run: D, and what was learned from it once the warm-up was over."""

    history: History
    learned: Learned | None


NO_STEP = 2**32 - 1
"""What is folded into keys that have nothing to do with any step."""


class ModelAgent(Agent):
    """An explorer of real states that is asked and told; every choice of it is a function of its seed and of D."""

    def __init__(
        self,
        config: ModelBasedConfig,
        state: Entry,
        action: Entry,
        *,
        key: PRNGKeyArray,
        space: tuple[np.ndarray, np.ndarray] | None = None,
        mesh: Mesh | None = None,
    ) -> None:
        """`space` has the bounds of states where they are known: imagination then knows of no land beyond. With a
        `mesh`, the ensemble is dealt out to its devices."""
        self.config, self._space, self._mesh = config, space, mesh
        self.history = History.empty(state, action)
        self.rounds: list[Round] = []
        """The reports of all rounds so far."""
        key_ensemble, self._key = jax.random.split(key)
        self.ensemble = self._new_ensemble(config.model, key_ensemble)
        if config.utility is not None:
            config.solver.check(self._mdp())
            if config.dreams and self.ensemble.numbered:
                raise InputError(
                    f"dreams is {config.dreams}, expected 0: dreams are of real actions, got Discrete ones"
                )
        self._moments: Moments | None = None
        self._memory: Any = None
        self._policy: Policy | None = None
        self._began = True
        self._planned = 0
        self._solved = 0
        self._solved_for = b""
        self._before: Any = None
        self._dream: Dream | None = None
        self._dreamt = 0
        self._told_at: int | None = None
        self._episode: int | None = None
        self._last: tuple[int, bytes, np.ndarray] | None = None

    @property
    def settings(self) -> Any:
        return self.config

    def learn_horizon(self, steps: int) -> None:
        if self._episode is None:
            self._episode = steps
            self.config = replace(self.config, solver=self.config.solver.within(steps))

    @property
    def horizon(self) -> int | None:
        return self._episode

    def begin(self) -> None:
        self._began = True

    def tell(self, transition: Transition, reward: float = 0.0) -> None:
        self.remember(transition)
        self._began = bool(transition.terminated | transition.truncated)

    def ask(self, state: np.ndarray) -> np.ndarray:
        now, place = self.steps, np.asarray(state).tobytes()
        if self._last is None or self._last[:2] != (now, place):
            self._last = (now, place, self._choose(now, state))
        return self._last[2]

    def _choose(self, now: int, state: np.ndarray) -> np.ndarray:
        if self.config.utility is None or now < self.config.warm_up:
            return np.asarray(anything(self._history.action_entry, (), _choice_keys(self._key, now).random))
        keys = _choice_keys(self._key, now)
        if not self.rounds or now - self._planned >= self.config.plan_every:
            report = self._learn(keys.fit)
            calibration = float(calibrated(self.ensemble, self.history, self.config.fit.held_out))
            unsolved = jax.tree.map(np.asarray, SolveInfo.blank())
            self.rounds.append(Round(now, report, unsolved, calibration, self.coverage))
            self._planned = now
        action = self._test(now, state, keys) if self._dreams(now) else self._explore(now, state, keys)
        self._began = False
        return np.asarray(action)

    def _explore(self, now: int, state: np.ndarray, keys: StepKeys) -> Array:
        """An action that leads to novelty. There is a new solve after a fit, and where the last one is of no use."""
        own, good_for = self.config, self.config.solver.good_for
        elsewhere = now == self._solved and np.asarray(state).tobytes() != self._solved_for
        stale = good_for is not None and (self._began or elsewhere or now - self._solved >= good_for)
        dreamt = self._dream is not None and self._solved < (self._dreamt + 1) * own.dream_steps
        again = stale or dreamt or (self._began and own.solve_at_reset)
        if again or self._policy is None or self._solved < self._planned:
            self.rounds[-1] = self.rounds[-1]._replace(solve=self._solve(state, keys.solve))
        assert self._policy is not None
        policy, entry = self._policy.later(now - self._solved), self._history.action_entry
        return _follow(policy, jnp.asarray(state), entry, own.dither, own.rest, keys)

    def _dreams(self, now: int) -> bool:
        """Whether this step tests a dream; the first stretch of all looks for novelty."""
        own = self.config
        begun = now - now % own.dream_steps > self.rounds[0].step
        return own.dreams > 0 and begun and scheduled(now, own.dream_steps, own.dreams, self._episode)

    def _test(self, now: int, state: np.ndarray, keys: StepKeys) -> Array:
        """What the dream of this stretch does; it is dreamt from the first state that the stretch is asked about."""
        number = now // self.config.dream_steps
        if self._dream is None or self._dreamt != number:
            self._dream = _boldest(*self._dreamt_in(), jnp.asarray(state), key=keys.solve)
            self._dreamt = number
        return _act(self._dream.policy, jnp.asarray(state))

    def _dreamt_in(self) -> tuple[Gradient, ExplorationMDP, Array]:
        """What dreams, where, and what is beyond anything in D."""
        steps, mdp = self.config.dream_steps, dream_mdp(self.ensemble, self.history, self._space)
        return dreamer(steps, self._episode), mdp, _records(self.ensemble, self.history, steps)

    @property
    def promises(self) -> bool:
        own = self.config.solver
        return self.config.utility is not None and not (isinstance(own, Sac) and not own.config.active)

    def promise(self, state: Any) -> float | None:
        promised = float(self.rounds[-1].solve.after) if self.rounds and self.promises else math.nan
        return None if math.isnan(promised) else promised  # a round that went by in a dream has none

    @property
    def model(self) -> GaussianEnsemble:
        if not self.rounds and self._told_at != self.steps:
            if not 0 < self.steps >= self.config.warm_up:
                raise InputError(f"there is no model yet: it is fitted after {self.config.warm_up} steps of warm-up")
            # Told enough, but never asked: the first round will begin anew.
            self._learn(jax.random.fold_in(self._key, self.steps))
            self._told_at = self.steps
        return self.ensemble

    def utility(self, states: np.ndarray, actions: np.ndarray) -> np.ndarray:
        if self.config.utility is None:
            raise InputError("random exploration has no utility: use another method")
        rows, moves = np.asarray(states), np.asarray(actions)
        leading = rows.shape[:-1]
        expected = (*leading, *self.history.action_entry.shape)
        if moves.shape != expected:
            raise InputError(f"actions has shape {moves.shape}, expected {expected}")
        flat = (rows.reshape(-1, rows.shape[-1]), moves.reshape(-1, *self.history.action_entry.shape))
        return np.asarray(_worth(self._mdp(self.model), *map(jnp.asarray, flat), key=self._key)).reshape(leading)

    def survey(self) -> dict[str, np.ndarray]:
        """The Jensen-Renyi divergence at probes, whatever the method looks for; it draws from keys of its own."""
        if not self.rounds:
            return {}
        key = jax.random.fold_in(jax.random.fold_in(self._key, NO_STEP), self.steps)
        states, actions = probes(self.history, self._space, key=key)
        own = self.config.utility
        mdp = ExplorationMDP(self.ensemble, own if isinstance(own, JensenRenyi) else JensenRenyi())
        rows = jnp.tile(states, (len(actions), 1)), actions.reshape(-1, *actions.shape[2:])
        utility = np.asarray(_worth(mdp, *rows, key=key)).reshape(len(actions), -1).mean(axis=0)
        return {
            "states": np.asarray(states),
            "utility": utility[:, None],
            "reliability": np.stack([np.asarray(LEVELS, np.float32), self._reliability()], axis=1),
        }

    def _reliability(self) -> np.ndarray:
        return np.asarray(reliability(self.ensemble, self.history, self.config.fit.held_out))

    @property
    def coverage(self) -> float:
        """How many bins of a standard deviation, as it was in the warm-up, were visited: the mean over dimensions."""
        return self._coverage(self.steps)

    def _coverage(self, steps: int) -> float:
        """What it was after so many steps."""
        rows = np.asarray(self.history.transitions.next_state)[:steps]
        if not len(rows):
            return 0.0
        early = rows[: self.config.warm_up]
        spread = early.std(axis=0)
        bins = np.round((rows - early.mean(axis=0)) / np.where(spread > 0, spread, 1.0))
        return float(np.mean([len(np.unique(column)) for column in bins.T]))

    @property
    def figures(self) -> list[dict[str, float]]:
        return [_figures(round_) for round_ in self.rounds]

    @property
    def latest(self) -> dict[str, float] | None:
        return _figures(self.rounds[-1]) if self.rounds else None

    def frozen(self, *, with_history: bool = True) -> tuple[dict[str, Any], dict[str, Any]]:
        plain = {
            "steps": self.steps,
            "began": self._began,
            "planned": self._planned,
            "solved": self._solved,
            "episode": self._episode,
            "solved_for": self._solved_for.hex(),
            "rounds": len(self.rounds),
            "termination": self.ensemble.members.termination is not None,
            "learned": self._moments is not None,
            "solution": self._policy is not None,
            "before": self._before is not None,
            "dreamt": None if self._dream is None else self._dreamt,
        }
        groups = {
            **self._frozen_history(with_history),
            "ensemble": eqx.filter(self.ensemble, eqx.is_array),
            "moments": self._moments,
            "solution": eqx.filter((self._policy, self._memory), eqx.is_array),
            "before": eqx.filter(self._before, eqx.is_array),
            "dream": eqx.filter(self._dream, eqx.is_array),
            "rounds": np.array([(own.step, own.calibration, own.coverage) for own in self.rounds]).reshape(-1, 3),
            "fits": _stacked([own.fit for own in self.rounds]),
            "solves": _stacked([own.solve for own in self.rounds]),
        }
        return plain, groups

    def thaw(self, plain: dict[str, Any], filled: Filled) -> None:
        self._thaw_history(plain["steps"], filled)
        if plain["episode"] is not None:
            self.learn_horizon(plain["episode"])
        if plain["termination"]:
            self.ensemble = self._new_ensemble(replace(self.config.model, termination=True), self._key)
        arrays, rest = eqx.partition(self.ensemble, eqx.is_array)
        ensemble = eqx.combine(filled("ensemble", arrays), rest)
        # What was saved was together; it does not matter how many devices it came from.
        members = devices.dealt(self._mesh, ensemble.members)
        self.ensemble = eqx.tree_at(lambda e: e.members, ensemble, members)
        if plain["learned"]:
            steps, first, second = filled("moments", Moments.zero(members))
            self._moments = Moments(steps, *devices.dealt(self._mesh, (first, second)))
        if plain["solution"]:
            like = eqx.filter_eval_shape(
                self.config.solver.solve, self._mdp(), self.history[jnp.int32(0)].state, self.history, key=self._key
            )
            arrays, rest = eqx.partition((like.policy, like.memory), lambda x: isinstance(x, jax.ShapeDtypeStruct))
            self._policy, self._memory = eqx.combine(filled("solution", arrays), rest)
            if plain["before"]:
                self._before = eqx.combine(filled("before", arrays[1]), rest[1])
        if plain.get("dreamt") is not None:  # files of before there were dreams have none
            state = self.history[jnp.int32(0)].state
            like = eqx.filter_eval_shape(boldest, *self._dreamt_in(), state, key=self._key)
            arrays, rest = eqx.partition(like, lambda x: isinstance(x, jax.ShapeDtypeStruct))
            self._dream, self._dreamt = eqx.combine(filled("dream", arrays), rest), plain["dreamt"]
        count, members = plain["rounds"], self.ensemble.size
        table = filled("rounds", np.zeros((count, 3)))
        fits = filled("fits", _stacked([_blank_fit(members)] * count))
        solves = filled("solves", _stacked([jax.tree.map(np.asarray, SolveInfo.blank())] * count))
        reports = [jax.tree.map(lambda x, k=k: np.asarray(x[k]), (fits, solves)) for k in range(count)]
        self.rounds = [
            Round(int(step), fit_, solve, float(calibration), float(coverage))
            for (step, calibration, coverage), (fit_, solve) in zip(table, reports, strict=True)
        ]
        self._began, self._planned, self._solved = plain["began"], plain["planned"], plain["solved"]
        self._solved_for = bytes.fromhex(plain["solved_for"])

    def adopt(self, lived: Lived) -> None:
        """Know what a compiled run with this agent's key has lived through."""
        self.history, now = lived.history, lived.learned
        last = self.history[self.history.size - 1]
        self._began = bool(last.terminated | last.truncated)
        if now is None:
            return
        self.ensemble, self._moments = now.ensemble, now.moments
        self._policy, self._memory, self._solved = now.policy, now.memory, int(now.solved)
        self._solved_for = np.asarray(self.history[now.solved].state).tobytes()
        if now.dreamt is not None and now.dreamt >= 0:
            self._dream, self._dreamt = now.dream, int(now.dreamt)
        fits, solves, calibrations = jax.tree.map(np.asarray, now.reports)
        for k, calibration in enumerate(calibrations):
            self._planned = self.config.warm_up + k * self.config.plan_every
            fit_, solve = jax.tree.map(lambda x, k=k: x[k], (fits, solves))
            self.rounds.append(Round(self._planned, fit_, solve, float(calibration), self._coverage(self._planned)))

    def _learn(self, key: PRNGKeyArray) -> FitReport:
        """Train on D, anew or further."""
        ends = bool(jnp.any(self.history.transitions.terminated & self.history.filled))
        fresh = self.config.draws_anew(len(self.rounds))
        if ends and self.ensemble.members.termination is None:
            self.ensemble = self._new_ensemble(replace(self.config.model, termination=True), jax.random.fold_in(key, 1))
            fresh = True
        config, moments = replace(self.config.fit, from_scratch=fresh), None if fresh else self._moments
        fitted = fit(self.ensemble, self.history, config, key=key, moments=moments)
        self.ensemble, self._moments = fitted.ensemble, fitted.moments
        return jax.tree.map(np.asarray, fitted.report)

    def _solve(self, state: np.ndarray, key: PRNGKeyArray) -> SolveInfo:
        if self.steps != self._solved:
            # Asked about several states at one step, it answers each as if it were the first.
            self._before = self._memory
        solution = self.config.solver.solve(self._mdp(), state, self.history, self._before, key=key)
        self._policy, self._memory = solution.policy, solution.memory
        self._solved, self._solved_for = self.steps, np.asarray(state).tobytes()
        return jax.tree.map(np.asarray, solution.info)

    def _mdp(self, ensemble: GaussianEnsemble | None = None) -> ExplorationMDP:
        history = self.history if self.steps else None
        return imagined_mdp(self.config, ensemble or self.ensemble, history, self._space)

    def _new_ensemble(self, config: GaussianConfig, key: PRNGKeyArray) -> GaussianEnsemble:
        return new_ensemble(self.history, config, mesh=self._mesh, key=key)


def imagined_mdp(
    config: ModelBasedConfig,
    ensemble: GaussianEnsemble,
    history: History | None,
    space: tuple[np.ndarray, np.ndarray] | None,
) -> ExplorationMDP:
    """What is solved in a round."""
    assert config.utility is not None
    return ExplorationMDP(ensemble, config.utility, history, margin=config.margin, space=space)


def new_ensemble(
    history: History, config: GaussianConfig, *, mesh: Mesh | None = None, key: PRNGKeyArray
) -> GaussianEnsemble:
    """Members as drawn, for the states and actions of this D."""
    (dims,), action = history.state_entry.shape, history.action_entry
    count = action.shape[0] if action.count is None else action.count
    return GaussianEnsemble(dims, count, config, numbered=action.count is not None, mesh=mesh, key=key)


def calibrated(ensemble: GaussianEnsemble, history: History, share: float) -> Float[Array, ""]:
    """What `Round` keeps of the reliability."""
    return reliability(ensemble, history, share)[LEVELS.index(0.8)]


def _stacked(reports: list[Any]) -> Any:
    """Reports of many rounds as one, with the rounds along a leading axis; nothing if there are none."""
    return jax.tree.map(lambda *each: np.stack(each), *reports) if reports else ()


def _blank_fit(members: int) -> FitReport:
    """A report of no fit at all, for its shapes."""
    count, each = jnp.zeros((), jnp.int32), Metrics(*(jnp.zeros(members) for _ in range(3)))
    return FitReport(count, count, count, count, each, each)


def _figures(round_: Round) -> dict[str, float]:
    """A round in plain numbers, by name."""
    return {
        "step": float(round_.step),
        "utility": float(round_.solve.after),
        "saturation": float(round_.solve.saturation),
        "nll": float(np.mean(round_.fit.held_out.nll)),
        "error": float(np.mean(round_.fit.held_out.error)),
        "calibration": round_.calibration,
        "coverage": round_.coverage,
        "clipped": float(round_.solve.clipped),
        "nonfinite": float(round_.solve.nonfinite),
        "skipped": float(round_.solve.skipped),
    }


@compiled
def _worth(mdp: ExplorationMDP, states: Array, actions: Array, *, key: PRNGKeyArray) -> Float[Array, " batch"]:
    return mdp.step(states, actions, key=key).reward


_choice_keys = compiled(choice_keys, filtered=False)
_follow = compiled(follow)
_records = compiled(records)
_boldest = compiled(boldest)
"""For callers that are not compiled themselves."""


@compiled
def _act(policy: Policy, state: Shaped[Array, "*state"]) -> Shaped[Array, "*action"]:
    return policy(state)
