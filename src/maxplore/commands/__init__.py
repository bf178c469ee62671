"""What the commands do. `maxplore_cli` has their options; here is everything that takes longer to import."""

from collections.abc import Mapping
from typing import Any

import maxplore_cli as cli
from maxplore import stalls
from maxplore.cache import use_compilation_cache
from maxplore.commands import exploring, listing, others, rehearsing, solving, sweeping
from maxplore.commands.say import status_of


def run(command: Any, settings: Mapping[str, Any]) -> int:
    """Do what was asked; the exit status."""
    use_compilation_cache()
    with stalls.ending_process("what is on record is kept: go on by `maxplore resume`, or by the same command"):
        try:
            return _run(command, settings)
        except KeyboardInterrupt as ended:
            return status_of(ended)


def _run(command: Any, settings: Mapping[str, Any]) -> int:
    match command:
        case cli.Explore():
            return exploring.explore(command, settings)
        case cli.Resume():
            return exploring.resume(command)
        case cli.Rehearse():
            return rehearsing.rehearse(command, settings)
        case cli.Exploit():
            return solving.exploit(command, settings)
        case cli.Reproduce():
            return others.reproduce(command)
        case cli.Sweep():
            return sweeping.sweep(command)
        case cli.Report():
            return others.report(command)
        case cli.Export():
            return others.export(command)
        case _:
            return listing.listed()
