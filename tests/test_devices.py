"""Members dealt out to devices do what they do on one, and are really dealt out."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from gymnasium import spaces

from maxplore import Explorer, InputError
from maxplore.devices import row
from maxplore_cli import parsed

ROOT = Path(__file__).parents[1]
BOX = spaces.Box(-1.0, 1.0, (2,))


@pytest.fixture(scope="module")
def found(tmp_path_factory):
    """What `tests.on_devices` saw: JAX must be told of its devices before it begins, so that takes another process."""
    path = os.pathsep.join(filter(None, [str(ROOT), *sys.path]))
    command = [sys.executable, "-W", "error", "-m", "tests.on_devices", str(tmp_path_factory.mktemp("devices"))]
    done = subprocess.run(command, cwd=ROOT, env={**os.environ, "PYTHONPATH": path}, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def test_fits_predictions_and_imagined_steps_are_those_of_one_device(found):
    for what, gap in found["models"]["apart"].items():
        assert gap < 1e-5, what
    assert found["models"]["steepest"] > 1e-3, "there is a slope at all"


@pytest.mark.parametrize(("count", "devices"), [("1", []), ("4", [0, 1, 2, 3])])
def test_each_device_holds_members_and_moments_of_its_own(found, count, devices):
    for what in ("members", "moments"):
        assert all(own == devices for own in found["models"][what][count]), what


def test_a_whole_round_fit_solve_act_is_that_of_one_device(found):
    assert found["round"]["members"] == [[0, 1]] * 4, "weights and biases of two layers"
    for what, gap in found["round"]["apart"].items():
        assert gap < 1e-4, what


def test_what_was_saved_on_two_devices_goes_on_with_any_number(found):
    assert found["round"]["back on"] == {"1": [], "4": [0, 1, 2, 3]}


def test_a_run_remembers_its_devices_and_takes_others(found):
    own = found["run"]
    assert own["counts"] == [2, 2, 4, 0], "nothing is dealt out on one device"
    assert own["noted"] == [[0, "2 from here on"], [6, "4 from here on"], [9, "1 from here on"]]
    assert own["warned"] == ["the run was computed on 4 devices, here are 2: it goes on with one"]
    assert own["refused"].startswith("devices is 3, expected a number that divides the 4 members evenly: 1, 2, 4")


def test_seeds_dealt_out_to_devices_are_the_same_seeds(found):
    assert found["seeds"]["apart"] < 1e-6


@pytest.mark.parametrize(
    ("devices", "members", "said"),
    [
        (0, 4, "devices is 0, expected a whole number of at least 1"),
        (2, 5, "devices is 2, expected a number that divides the 5 members evenly: 1, 5; or other members"),
        (4, 4, "devices is 4, expected at most 1, the cpu devices found here: set JAX_NUM_CPU_DEVICES=4"),
    ],
)
def test_devices_that_cannot_be_had_are_refused_in_one_line(devices, members, said):
    with pytest.raises(InputError, match=said):
        Explorer(BOX, BOX, preset="smoke", members=members, devices=devices)
    with pytest.raises(InputError, match=said):
        row(devices, members)


def test_the_command_line_has_them_too():
    assert parsed(["explore", "Pendulum-v1", "--devices", "2"])[0].devices == 2
    assert parsed(["resume", "runs/a", "--devices", "2"])[0].devices == 2
    assert parsed(["resume", "runs/a"])[0].devices is None, "as many as the last time"


def test_small_ensembles_of_discrete_spaces_stay_on_one():
    with pytest.raises(InputError, match="devices is 2, expected 1: the small ensembles of Discrete spaces"):
        Explorer(spaces.Discrete(3), spaces.Discrete(2), devices=2)
