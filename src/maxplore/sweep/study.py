"""A study: environments x methods x seeds x settings, as data. A small TOML file, or a figure that is made of runs."""

import math
import re
import tomllib
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from difflib import get_close_matches
from itertools import product
from pathlib import Path
from typing import Any, NamedTuple

from maxplore import spaces
from maxplore.checks import counted
from maxplore.entry import Entry
from maxplore.errors import InputError
from maxplore.exploit import FiniteExploitConfig
from maxplore.exploit.real import configured
from maxplore.methods import FINITE, METHODS, PRESETS, finite_explorer, model_based
from maxplore.runs.run import made
from maxplore.settings import overridden
from maxplore.sweep.trial import Trial
from maxplore.tasks import TASKS, named

MOST_TRIALS = 100_000
"""Of one study."""
MOST_SEED = 2**32 - 1
LONGEST = 150
"""Letters in the name of a trial."""

EVERYWHERE = ("steps", "preset", "settings", "tasks", "after", "solving", "episodes")
"""What can be said of the whole study, and otherwise of one of its environments."""
KEYS = {
    "the study": ("environments", "methods", "seeds", "first_seed", "variations", *EVERYWHERE),
    "an environment": ("id", "name", "kwargs", *EVERYWHERE),
    "a variation": ("name", "settings", "methods"),
}


class Study(NamedTuple):
    """Trials by name: that of the folder of each."""

    name: str
    trials: dict[str, Trial]


@dataclass(frozen=True)
class Variation:
    """Settings that go by a name, for some methods or all."""

    name: str = ""
    settings: Mapping[str, Any] | None = None
    methods: tuple[str, ...] = ()


def read(path: Path) -> Study:
    """The study in this file, or an `InputError` in one line."""
    try:
        plain = tomllib.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise InputError(f"{path} cannot be read ({error.strerror}): expected a study in TOML") from error
    except (ValueError, RecursionError) as error:  # also one about a number that is too long to be read
        raise InputError(f"{path} is no TOML ({error}): expected a study") from None
    try:
        trials = dict(_trials(plain))
    except InputError as error:
        raise InputError(f"{path}: {error}") from None
    return Study(path.stem, trials)


def check(trials: Mapping[str, Trial]) -> None:
    """An `InputError` now if a trial would be refused as soon as it began: no environment, or no such setting."""
    worlds: dict[str, tuple[Entry, Entry]] = {}
    fine: set[str] = set()
    for name, trial in trials.items():
        world, kind = repr((trial.env, trial.env_kwargs)), repr(replace(trial, seed=0))
        if kind in fine:
            continue
        try:
            if world not in worlds:
                worlds[world] = _entries(trial)
            _check(trial, *worlds[world])
        except InputError as error:
            raise InputError(f"{name}: {error}") from error
        fine.add(kind)


def _entries(trial: Trial) -> tuple[Entry, Entry]:
    """What states and actions of the environment look like."""
    env = made(trial.env, trial.env_kwargs)
    actions = spaces.actions(env.action_space).entry
    states = spaces.observations(env.observation_space, numbered=actions.count is not None).entry
    env.close()
    return states, actions


def _check(trial: Trial, states: Entry, actions: Entry) -> None:
    if states.count is not None and actions.count is not None:
        finite_explorer(trial.method, trial.preset, trial.settings)
        overridden(FiniteExploitConfig(), trial.solving)
    else:
        model_based(trial.method, trial.preset, trial.settings, states, actions)
        configured(states, actions, trial.solving)
    for task in trial.tasks:
        named(task, states, actions)


def _trials(plain: Mapping[str, Any]) -> Iterator[tuple[str, Trial]]:
    """Every trial and its name: seeds change slowest, so that a study that is stopped has seen a bit of everything."""
    _known("the study", plain)
    environments = [_environment(each) for each in _listed(plain, "environments", "at least one")]
    methods = _words("methods", plain.get("methods", ["max"]))
    seeds, variations = _seeds(plain), _variations(plain, methods)
    _differ("environments", [name for name, _ in environments])
    _differ("methods", methods)
    _differ("variations", [own.name for own in variations])
    size = len(environments) * len(methods) * len(variations) * len(seeds)
    if size > MOST_TRIALS:
        raise InputError(f"there are {size} trials, expected at most {MOST_TRIALS}: make several studies of it")
    taken: set[str] = set()
    for seed, (place, own), variation, method in product(seeds, environments, variations, methods):
        if variation.methods and method not in variation.methods:
            continue
        name = "-".join(_safe(part) for part in (place, method, variation.name, str(seed)) if part)
        if name.casefold() in taken:
            raise InputError(f"two trials would be called {name}: give an environment or a variation another name")
        if len(name) > LONGEST:
            raise InputError(f"a trial would be called {name}, expected at most {LONGEST} letters: give shorter names")
        taken.add(name.casefold())
        yield name, _trial(plain, own, method, seed, variation)


def _trial(plain: Mapping[str, Any], own: Mapping[str, Any], method: str, seed: int, variation: Variation) -> Trial:
    told = {**plain, **own}
    if "steps" not in told:
        raise InputError("steps is missing, expected how long each run is")
    steps, tasks = counted("steps", told["steps"]), _words("tasks", told.get("tasks", []), empty=True)
    after = [counted("after", each) for each in _list("after", told.get("after", [steps] if tasks else []))]
    if tasks and not after:
        raise InputError("after is empty with tasks, expected the steps that each is solved from: leave it out for all")
    for name, given in (("after", after), ("solving", told.get("solving")), ("episodes", told.get("episodes"))):
        if given and not tasks:
            raise InputError(f"{name} is given without tasks, expected both or none")
    if over := [each for each in after if each > steps]:
        raise InputError(f"after has {over[0]}, expected at most the {steps} steps of a run")
    _differ("tasks", tasks)
    _differ("after", [str(each) for each in after])
    _one_of("preset", told.get("preset", "fast"), PRESETS)
    for task in tasks:
        _one_of("tasks", task, TASKS)
    settings = {**_plain("settings", plain.get("settings", {})), **_plain("settings", own.get("settings", {}))}
    return Trial(
        env=own["id"],
        method=method,
        seed=seed,
        steps=steps,
        preset=told.get("preset", "fast"),
        env_kwargs=_plain("kwargs", own.get("kwargs", {})),
        settings={**settings, **(variation.settings or {})},
        tasks=tuple(tasks),
        after=tuple(after),
        solving=_plain("solving", told.get("solving", {})),
        episodes=counted("episodes", told.get("episodes", 3)),
    )


def _environment(given: Any) -> tuple[str, Mapping[str, Any]]:
    """What an environment is called, and all that is said of it."""
    own: Mapping[str, Any] = {"id": given} if isinstance(given, str) else given
    if not isinstance(own, dict):
        raise InputError(f"environments has {given!r}, expected the id of one, or a table with id")
    _known("an environment", own)
    if not isinstance(own.get("id"), str) or not own["id"]:
        raise InputError(f"an environment has id {own.get('id')!r}, expected one such as 'maxplore/MountainCar-v0'")
    return _word("name", own.get("name", own["id"].removeprefix("maxplore/"))), own


def _seeds(plain: Mapping[str, Any]) -> list[int]:
    """A list of them, or so many from the first on."""
    given, first = plain.get("seeds", 1), plain.get("first_seed", 0)
    if isinstance(given, list):
        if "first_seed" in plain:
            raise InputError("first_seed is given beside a list of seeds, expected a number of seeds with it")
        seeds = _listed(plain, "seeds", "at least one")
    else:
        if not _whole(first):
            raise InputError(f"first_seed is {first!r}, expected a whole number")
        if counted("seeds", given) > MOST_TRIALS:
            raise InputError(f"seeds is {given}, expected at most {MOST_TRIALS}")
        seeds = list(range(first, first + given))
    for seed in seeds:
        if not _whole(seed) or not 0 <= seed <= MOST_SEED:
            raise InputError(f"seeds has {seed!r}, expected whole numbers from 0 to {MOST_SEED}")
    _differ("seeds", [str(seed) for seed in seeds])
    return seeds


def _variations(plain: Mapping[str, Any], methods: list[str]) -> list[Variation]:
    for method in methods:
        _one_of("methods", method, [*METHODS, *(name for name in FINITE if name not in METHODS)])
    if "variations" not in plain:
        return [Variation()]
    found: list[Variation] = []
    for own in _listed(plain, "variations", "at least one, or none of this"):
        if not isinstance(own, dict):
            raise InputError(f"variations has {own!r}, expected tables with name and settings")
        _known("a variation", own)
        name, only = _word("name", own.get("name", "")), _words("methods", own.get("methods", methods))
        for method in only:
            _one_of(f"methods of variation {name}", method, methods)
        found.append(Variation(name, _plain("settings", own.get("settings", {})), tuple(only)))
    return found


def _known(what: str, table: Mapping[str, Any]) -> None:
    for name in table:
        if name not in KEYS[what]:
            near = get_close_matches(name, KEYS[what], n=1) or KEYS[what]
            raise InputError(f"{name!r} is nothing that {what} has, expected {' or '.join(near)}")


def _listed(plain: Mapping[str, Any], name: str, wanted: str) -> list[Any]:
    if name not in plain:
        raise InputError(f"{name} is missing, expected {wanted}")
    found = _list(name, plain[name])
    if not found:
        raise InputError(f"{name} is empty, expected {wanted}")
    return found


def _list(name: str, value: Any) -> list[Any]:
    if not isinstance(value, list):
        raise InputError(f"{name} is {value!r}, expected a list")
    return value


def _words(name: str, value: Any, *, empty: bool = False) -> list[str]:
    words = [_word(name, each) for each in _list(name, value)]
    if not words and not empty:
        raise InputError(f"{name} is empty, expected at least one")
    return words


def _word(name: str, value: Any) -> str:
    if not isinstance(value, str) or not _safe(value):
        raise InputError(f"{name} is {value!r}, expected a word")
    return value


def _one_of(name: str, value: Any, known: Any) -> None:
    if value not in known:
        raise InputError(f"{name} has {value!r}, expected one of {', '.join(known)}")


def _differ(name: str, values: list[str]) -> None:
    for value, count in Counter(values).items():
        if count > 1:
            raise InputError(f"{name} has {value!r} twice, expected each once")


def _whole(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)


def _plain(name: str, value: Any) -> dict[str, Any]:
    """A table of what JSON has, too."""
    if not isinstance(value, dict):
        raise InputError(f"{name} is {value!r}, expected a table")
    for key, each in value.items():
        _check_plain(f"{name}.{key}", each)
    return value


def _check_plain(name: str, value: Any) -> None:
    if isinstance(value, list):
        for each in value:
            _check_plain(name, each)
    elif not isinstance(value, bool | int | float | str) or (isinstance(value, float) and math.isnan(value)):
        raise InputError(f"{name} is {value!r}, expected a number, a word, true or false, or a list of these")


def _safe(text: str) -> str:
    """As the name of a folder has it, anywhere.

    >>> _safe("maxplore/Chain-v0"), _safe("../.."), _safe("a b")
    ('maxplore-Chain-v0', '', 'a-b')
    """
    return re.sub(r"[^A-Za-z0-9._]+", "-", text).strip("-.")
