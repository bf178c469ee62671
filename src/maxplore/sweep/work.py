"""What a worker does: `python -m maxplore.sweep.work TRIAL.json RUN PARENT` brings the run in that folder to its end.

Whatever ends a worker, the next one goes on where it was: nothing that is done is done again. It ends with the process
PARENT that started it.
"""

import ctypes
import os
import signal
import sys
import warnings
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np

from maxplore import stalls
from maxplore.cache import use_compilation_cache
from maxplore.errors import InputError
from maxplore.explorer import Explorer
from maxplore.runs import files
from maxplore.runs import run as running
from maxplore.runs.directory import BusyError, Folder
from maxplore.runs.interrupt import INTERRUPTED, interruptible
from maxplore.runs.record import Record
from maxplore.runs.reliving import told
from maxplore.runs.run import Run
from maxplore.runs.solved import kept
from maxplore.sweep.engine import BUSY, FAILED
from maxplore.sweep.trial import Trial, done

GRID = 40
"""Cells of a landscape along each dimension."""
MOVES = 5
"""Actions along each dimension that its utility is the mean of."""


def work(trial: Trial, path: Path) -> bool:
    """Bring a trial to its end; whether it got there, or was asked to stop."""
    before = done(trial, path)
    if not before.explored(trial) and not _explored(trial, path):
        return False
    for task, steps in trial.asked:
        if (task, steps) not in before.solved:
            _solve(trial, path, task, steps)
    return True


def _explored(trial: Trial, path: Path) -> bool:
    """Explore as far as is asked for, with a look at the landscape on the way; whether it got there."""
    with interruptible() as stopped, _run(trial, path) as run:
        run.record.aim(trial.steps)
        for steps in sorted({*trial.landscapes, trial.steps}):
            if not run.explore(steps, stop=stopped):
                return False
            if steps in trial.landscapes and run.steps == steps:
                keep_landscape(run.explorer, run.folder.writable(run.folder.landscape(steps)))
    return True


def _run(trial: Trial, path: Path) -> Run:
    """The run of a trial: where it was, or from the beginning."""
    if Folder(path).is_run:
        return running.resumed(path)
    return running.new(
        path,
        trial.env,
        env_kwargs=trial.env_kwargs,
        method=trial.method,
        preset=trial.preset,
        seed=trial.seed,
        settings=trial.settings,
        steps=trial.steps,
    )


def keep_landscape(explorer: Explorer, file: Path) -> None:
    """The utility over the plane of states, the mean over actions, in nats."""
    space, moves = explorer.observation_space, explorer.action_space
    low, high = (np.asarray(getattr(space, name), float) for name in ("low", "high"))
    if low.shape != (2,) or not np.isfinite([low, high]).all():
        raise InputError(f"a landscape is asked for of {space}, expected two bounded dimensions")
    first, second = (np.linspace(a, b, 2 * GRID + 1)[1::2] for a, b in zip(low, high, strict=True))
    states = np.stack(np.meshgrid(first, second, indexing="ij"), axis=-1).reshape(-1, 2).astype(np.float32)
    ends = (np.asarray(getattr(moves, name), float).ravel() for name in ("low", "high"))
    axes = [np.linspace(a, b, MOVES) for a, b in zip(*ends, strict=True)]
    actions = np.stack(np.meshgrid(*axes, indexing="ij"), axis=-1).reshape(-1, len(axes)).astype(np.float32)
    each = [explorer.utility(states, np.broadcast_to(action, (len(states), len(axes)))) for action in actions]
    with files.placed(file) as out:
        np.savez(out, utility=np.mean(each, axis=0).reshape(GRID, GRID), first=first, second=second)


def _solve(trial: Trial, path: Path, task: str, steps: int) -> None:
    """Solve a task from the first steps of D, and keep what came of it in the run."""
    explorer, env = _told(path, steps), running.made(trial.env, trial.env_kwargs)
    explorer.meet(env)
    policy = explorer.exploit(task, **trial.solving)
    returns = [float(x) for x in policy.evaluate(env, trial.episodes, seed=RATED)]
    env.close()
    kept(Folder(path), task, policy.report, returns, seed=0, settings=trial.solving, step=steps)


RATED = 10_000
"""Seed of the first real episode that a policy is rated in."""

_last: tuple[Path, int, Explorer] | None = None


def _told(path: Path, steps: int) -> Explorer:
    """Who has been told so much of D; the same one for the next task, whose model it then has already."""
    global _last
    if _last is None or _last[:2] != (path, steps):
        with Record.read(Folder(path).record) as record:
            _last = (path, steps, told(Folder(path), record, steps))
    return _last[2]


def _end_with(parent: int) -> None:
    """Finish the step and stop if asked to, or if the parent is gone, however it went: of that Linux alone tells."""

    def ended(*_: Any) -> None:
        signal.signal(signal.SIGTERM, signal.SIG_IGN)  # each thread of a parent that dies is a parent that dies
        os.kill(os.getpid(), signal.SIGINT)

    signal.signal(signal.SIGTERM, ended)
    signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGINT, signal.SIGTERM})  # Ray's children inherit its deaf ear
    with suppress(OSError, AttributeError):
        ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGTERM)
    if os.getppid() != parent:
        raise KeyboardInterrupt


PR_SET_PDEATHSIG = 1


def main() -> int:
    file, path, parent = Path(sys.argv[1]), Path(sys.argv[2]), int(sys.argv[3])
    warnings.simplefilter("default", UserWarning)
    try:
        _end_with(parent)
        use_compilation_cache()
        with stalls.ending_process("another worker goes on with what is on record"):
            return 0 if work(Trial.read(file), path) else INTERRUPTED
    except KeyboardInterrupt:
        return INTERRUPTED
    except (InputError, OSError, SystemExit) as error:
        reason = f"SystemExit: {error}" if isinstance(error, SystemExit) else str(error)
        sys.stderr.write(f"{' '.join(reason.split())}\n")
        return BUSY if isinstance(error, BusyError) else FAILED


if __name__ == "__main__":
    sys.exit(main())
