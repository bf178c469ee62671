"""Every command as its users have it: compiled with the options of XLA that they have, and not those that make this
suite fast."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from maxplore.compiling import OPTIONS

SMALL = "--members 2 --model-depth 1 --epochs 1"
TASK = f"{SMALL} --solver gradient --iterations 2 --ahead 0 --foreseen 0 --horizon 5 --episodes 1"
COMMANDS = (
    "reproduce chain-behaviour --preset smoke --out figure",
    f"explore Pendulum-v1 --preset smoke --steps 60 {SMALL} --solver icem --progress quiet --out run",
    "resume run --steps 70 --progress quiet",
    f"rehearse run --rounds 1 --wishes 1 {TASK}",
    f"exploit run --reward reward.py:reward {TASK}",
    "report run",
    "export run --to npz",
    "list",
    "sweep study.toml --out sweep --workers 1",
)
STUDY = 'environments = ["maxplore/MountainCar-v0"]\nmethods = ["random"]\npreset = "smoke"\nsteps = 5\nseeds = 1\n'
REWARD = "def reward(state, action, next_state):\n    return next_state[0]\n"

ALL_OF_THEM = """
import sys, maxplore_cli
for command in sys.argv[1:]:
    print(command, flush=True)
    if status := maxplore_cli.main(command.split()):
        sys.exit(status)
"""

EAGER = {
    "_bernoulli",
    "_broadcast_arrays",
    "_randint",
    "_reduce_any",
    "_reduce_max",
    "_reduce_min",
    "_roll_static",
    "_squeeze",
    "_threefry_fold_in",
    "_threefry_seed",
    "_threefry_split",
    "_uniform",
    "_where",
    "add",
    "bitwise_and",
    "bitwise_or",
    "broadcast_in_dim",
    "concatenate",
    "convert_element_type",
    "dynamic_slice",
    "gather",
    "iota",
    "less",
    "maximum",
    "minimum",
    "multiply",
    "reshape",
    "scatter",
    "select_n",
    "sqrt",
    "squeeze",
    "stage",
    "subtract",
    "tile",
    "unstack",
}
"""Single operations that JAX runs for us outside of any program of ours, by its own names and under the users' options
of XLA. All of them are run here. Another one is to be added if it is a single operation, and else compiled by us."""


@pytest.fixture(scope="module")
def compiled(tmp_path_factory: pytest.TempPathFactory) -> list[tuple[str, dict[str, str]]]:
    """Names and options of all programs that the commands, and the worker of a sweep, have had compiled."""
    folder = tmp_path_factory.mktemp("users")
    (folder / "study.toml").write_text(STUDY)
    (folder / "reward.py").write_text(REWARD)
    own = {name: value for name, value in os.environ.items() if not name.startswith(("JAX_", "XLA_"))}
    told = {"PYTHONPATH": str(Path(__file__).parent / "as_users"), "COMPILED": str(folder / "compiled")}
    environment = {**own, **told, "XDG_CACHE_HOME": str(folder)}
    command = [sys.executable, "-c", ALL_OF_THEM, *COMMANDS]
    ended = subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, timeout=1200)
    assert ended.returncode == 0, ended.stdout + ended.stderr
    return [tuple(json.loads(line)) for line in (folder / "compiled").read_text().splitlines()]


def test_programs_of_ours_are_compiled_with_our_options_whichever_command_runs_them(compiled):
    ours = {name for name, options in compiled if options == OPTIONS}
    assert {"_fit", "_run", "_promises", "_judged", "_tried_on", "_act", "_step"} <= ours
    assert not {name for name, options in compiled if options not in (OPTIONS, {})}


def test_all_others_are_single_operations_of_jax(compiled):
    assert {name for name, options in compiled if not options} == EAGER
