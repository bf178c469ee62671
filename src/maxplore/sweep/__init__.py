"""Many runs: a study is trials, a trial is an ordinary run directory, an engine sees to it that all of them end."""

from maxplore.sweep.local import Outcome, run_all
from maxplore.sweep.trial import Done, Trial, done

__all__ = ["Done", "Outcome", "Trial", "done", "run_all"]
