"""Many runs: a study is trials, a trial is an ordinary run directory, an engine sees to it that all of them end."""

from maxplore.sweep.engine import Ended, Engine
from maxplore.sweep.local import Local
from maxplore.sweep.running import Outcome, run_all
from maxplore.sweep.trial import Done, Keeper, Trial, done

__all__ = ["Done", "Ended", "Engine", "Keeper", "Local", "Outcome", "Trial", "done", "run_all"]
