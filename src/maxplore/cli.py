"""What people type: `maxplore reproduce FIGURE`, `maxplore list`."""

import argparse
import contextlib
import os
import sys
from collections.abc import Sequence
from pathlib import Path


def main(arguments: Sequence[str] | None = None) -> int:
    """The command line. Bad input gets one line and a non-zero exit."""
    parser = argparse.ArgumentParser(prog="maxplore", description="Model-Based Active Exploration.")
    parser.add_argument("--version", action="store_true", help="print the version and exit")
    commands = parser.add_subparsers(dest="command")
    commands.add_parser("list", help="the figures that can be reproduced")
    figure = commands.add_parser("reproduce", help="run a figure of the paper, and judge its claims")
    figure.add_argument("figure", help="a name from `maxplore list`")
    figure.add_argument("--seeds", type=int, help="how many (default: the figure's own number)")
    figure.add_argument("--episodes", type=int, help="how many (default: the figure's own number)")
    figure.add_argument("--configs", type=int, help="of a grid: settings of each method, 0 for all of them")
    figure.add_argument("--out", type=Path, help="where to (default: runs/FIGURE)")
    given = parser.parse_args(arguments)

    # Nothing heavy is imported before it is needed: --help answers at once.
    if given.version:
        from maxplore import __version__

        _say(__version__)
    elif given.command == "list":
        from maxplore.experiments import EXPERIMENTS

        for name, experiment in EXPERIMENTS.items():
            _say(f"{name:16s} {experiment.title}")
    elif given.command == "reproduce":
        return _reproduce(given)
    else:
        parser.print_help()
    return 0


def _reproduce(given: argparse.Namespace) -> int:
    import jax

    from maxplore.errors import InputError
    from maxplore.experiments import reproduce

    with contextlib.suppress(RuntimeError):  # JAX has started already: then it is its owner's choice
        jax.config.update("jax_num_cpu_devices", os.cpu_count() or 1)  # seeds are dealt out to devices
    out = given.out or Path("runs") / given.figure
    wanted = {"seeds": given.seeds, "episodes": given.episodes, "configs": given.configs}
    try:
        summary = reproduce(given.figure, out, **wanted, say=_say)
    except (InputError, OSError) as error:
        sys.stderr.write(f"maxplore: {error}\n")
        return 2
    except KeyboardInterrupt:
        sys.stderr.write("maxplore: interrupted, nothing was written but the settings of a grid that were done\n")
        return 130
    for claim in summary["claims"]:
        verdict = "holds" if claim["holds"] else "DOES NOT HOLD"
        _say(f"{verdict:14s} {claim['claim']}: {claim['measured']} (paper: {claim['paper']})")
    _say(f"written to {out}")
    return 0


def _say(line: str) -> None:
    sys.stdout.write(line + "\n")
    sys.stdout.flush()


if __name__ == "__main__":
    sys.exit(main())
