"""A record's transitions D for other tools, to the last bit: plain arrays, one `.npz` file, a data set of Minari's."""

import os
import re
import shutil
import tempfile
from collections.abc import Iterator, Mapping
from dataclasses import replace
from itertools import groupby
from pathlib import Path
from typing import Any

import gymnasium as gym
import numpy as np
from gymnasium import spaces
from gymnasium.envs.registration import EnvSpec

from maxplore.errors import InputError
from maxplore.runs import files
from maxplore.runs.coded import decoded
from maxplore.runs.directory import check_not_own, make_directory
from maxplore.runs.record import Episode, Record, Step

Space = gym.Space[Any]
NAME = re.compile(r"(?:(?!data/)[-\w]{2,}/)*[-\w]+-v\d+")
"""Names that Minari can write, load and list; to it, a folder called data is the inside of a data set."""


def arrays(record: Record, observation_space: Space, action_space: Space) -> dict[str, np.ndarray]:
    """D in the environment's own units, a row a transition: `observations`, `actions`, `next_observations`, `rewards`,
    `terminated`, `truncated`, and `episodes`, the number of each one's episode. The parts of a Dict or a Tuple are
    arrays of their own: `observations/camera`, `actions/0`."""
    told = list(_told(record, observation_space, action_space))
    steps = [step for *_, own in told for step in own]
    return {
        **_named("observations", _stacked(observation_space, [x for _, seen, _, _ in told for x in seen[:-1]])),
        **_named("actions", _stacked(action_space, [x for _, _, actions, _ in told for x in actions])),
        **_named("next_observations", _stacked(observation_space, [x for _, seen, _, _ in told for x in seen[1:]])),
        "rewards": np.array([step.reward for step in steps], np.float64),
        "terminated": np.array([step.terminated for step in steps], bool),
        "truncated": np.array([step.truncated for step in steps], bool),
        "episodes": np.array([step.episode for step in steps], np.int64),
    }


def to_npz(record: Record, observation_space: Space, action_space: Space, path: Path) -> None:
    """Write `arrays` to a new file, for `numpy.load`."""
    if files.kind(path) is not None:
        raise InputError(f"{path} exists already: choose another name, or remove it first")
    check_not_own(path)
    own = arrays(record, observation_space, action_space)
    make_directory(path.parent)
    with files.placed(path) as file:
        np.savez(file, allow_pickle=False, **own)


def to_minari(
    record: Record,
    observation_space: Space,
    action_space: Space,
    folder: Path,
    name: str,
    *,
    env_id: str | None,
    env_kwargs: Mapping[str, Any] | None = None,
) -> None:
    """Write D as a new data set, for `minari.load_dataset(name)` where MINARI_DATASETS_PATH is `folder`.

    The environment is not made; it is described, if JSON can describe it, and its id is kept either way. An episode
    that nothing ended is told as truncated, one without a transition is left out.
    """
    if not NAME.fullmatch(name):
        form = "namespace/name-v0 of letters, digits, - and _, the namespace at least two of them, and not data"
        raise InputError(f"name is {name!r}, expected the form {form}")
    folder = folder.absolute()  # HDF5 takes a relative path twice
    target = folder / name
    if files.kind(target) is not None:
        raise InputError(f"{target} exists already: choose another name or version")
    check_not_own(target)
    try:
        import h5py  # noqa: F401  # pyright: ignore[reportUnusedImport]
        import minari
        from minari.data_collector.episode_buffer import EpisodeBuffer
        from minari.dataset.minari_storage import MinariStorage
        from minari.namespace import NAMESPACE_METADATA_FILENAME
    except ImportError as error:
        raise InputError(f"Minari cannot be imported ({error}): pip install maxplore[minari]") from error
    if not record.steps:
        raise InputError(f"{record.path} has no transition yet, expected at least one")
    spec = None if env_id is None else _spec(env_id, env_kwargs or {})
    about = {"dataset_id": name, "minari_version": minari.__version__, "algorithm_name": "maxplore"}
    about |= {} if env_id is None else {"description": f"transitions of {env_id}"}

    def buffered(begun: Episode, seen: list[Any], actions: list[Any], steps: list[Step]) -> EpisodeBuffer:
        return EpisodeBuffer(
            seed=begun.seed,
            observations=_stacked(observation_space, seen),
            actions=_stacked(action_space, actions),
            rewards=[step.reward for step in steps],
            terminations=[step.terminated for step in steps],
            truncations=[step.truncated or (step is steps[-1] and not step.terminated) for step in steps],
            infos={},  # with None, Minari fails to print an episode
        )

    try:
        make_directory(folder)
        _check_room(record, folder)
        with tempfile.TemporaryDirectory(prefix=".", dir=folder) as hidden:  # from Minari, too
            draft = Path(hidden) / "draft"
            draft.mkdir()
            # By default Minari keeps pictures as JPEG, which is not what was seen.
            storage = MinariStorage.new(draft / "data", observation_space, action_space, spec, jpeg_encoding=False)
            storage.update_metadata(about)
            storage.update_episodes(buffered(*own) for own in _told(record, observation_space, action_space))
            for namespace in reversed(target.relative_to(folder).parents[:-1]):
                files.check_kind(folder / namespace, files.DIRECTORY)
                (folder / namespace).mkdir(exist_ok=True)
                if files.kind(folder / namespace / NAMESPACE_METADATA_FILENAME) is None:
                    files.write_text(folder / namespace / NAMESPACE_METADATA_FILENAME, "{}")
            draft.rename(target)
    except InputError:
        raise
    except Exception as error:  # whatever Minari and HDF5 have to say
        what = f"{type(error).__name__}: {error}"
        raise InputError(f"{target} cannot be written ({what}); nothing of it is left") from error


def _check_room(record: Record, folder: Path) -> None:
    """Refuse a disk that may be too full for a data set: HDF5 would not complain, but crash."""
    kept = sum(os.path.getsize(own) for own in (record.path, f"{record.path}-wal") if os.path.exists(own))
    last, room = record.last_episode(), shutil.disk_usage(folder).free
    needed = 2 * kept + (1 if last is None else last.episode + 1) * 2**16  # an episode costs HDF5 15 kB and more
    if room < needed:
        raise InputError(f"{folder} has room for {room:,} bytes, expected {needed:,} to be safe: make room on the disk")


def _told(
    record: Record, observation_space: Space, action_space: Space
) -> Iterator[tuple[Episode, list[Any], list[Any], list[Step]]]:
    """Episodes: how each began, what was seen in it (one more than there are steps), the actions and the steps."""
    for number, group in groupby(record.transitions(), key=lambda step: step.episode):
        steps, begun = list(group), next(record.episodes(number), None)
        if begun is None or begun.episode != number:
            raise InputError(f"{record.path} does not tell how episode {number} began: the record is damaged")
        seen = [begun.observation, *(step.next_observation for step in steps)]
        actions = [decoded(action_space, step.action) for step in steps]
        yield begun, [decoded(observation_space, data) for data in seen], actions, steps


def _spec(env_id: str, env_kwargs: Mapping[str, Any]) -> EnvSpec | None:
    """What Gymnasium makes the environment from; None if it is not registered here, or has a class for an entry point,
    or anything else that JSON cannot say."""
    try:
        spec = gym.spec(env_id)
        spec = replace(spec, kwargs={**spec.kwargs, **env_kwargs})
        spec.to_json()
    except (gym.error.Error, TypeError, ValueError):
        return None
    return spec


def _stacked(space: Space, rows: list[Any]) -> Any:
    """Values of a space as one array, or as a dict or tuple of arrays, a row a value."""
    if isinstance(space, spaces.Dict):
        return {key: _stacked(part, [row[key] for row in rows]) for key, part in space.items()}
    if isinstance(space, spaces.Tuple):
        return tuple(_stacked(part, [row[k] for row in rows]) for k, part in enumerate(space.spaces))
    kind = np.int64 if isinstance(space, spaces.Discrete) else space.dtype
    return np.array(rows, kind).reshape(len(rows), *(space.shape or ()))


def _named(name: str, tree: Any) -> dict[str, np.ndarray]:
    """The arrays of a nest of dicts and tuples, each with its path for a name."""
    if isinstance(tree, np.ndarray):
        return {name: tree}
    parts = tree.items() if isinstance(tree, dict) else enumerate(tree)
    return {path: own for key, part in parts for path, own in _named(f"{name}/{key}", part).items()}
