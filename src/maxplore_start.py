"""Where the command begins: it hears Ctrl-C from its first line on, before anything that takes time is imported.

A `KeyboardInterrupt` raised inside an import is lost, or becomes another error, where a compiled extension imports
modules of Python. Nothing is begun before the imports are done, so that the process can simply end.
"""

import os
import signal
import sys
from typing import Any

INTERRUPTED = 130
"""Exit status of what was stopped by Ctrl-C."""


def main() -> int:
    """`maxplore`, as it is installed."""
    signal.signal(signal.SIGINT, _end)
    for name, mode in (("stdin", "r"), ("stdout", "w"), ("stderr", "w")):
        if getattr(sys, name) is None:  # it was closed, and a file of a run would get its number, and what goes there
            setattr(sys, name, open(os.devnull, mode))  # noqa: SIM115
    from maxplore_cli import main as command_line

    return command_line()


def _end(*_: Any) -> None:
    os._exit(INTERRUPTED)


if __name__ == "__main__":
    sys.exit(main())
