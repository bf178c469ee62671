"""Episodes of a policy in a run: on record like any other, told to the explorer and never asked of it."""

import math
import sys
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import maxplore
from maxplore import spaces
from maxplore.commands.rehearsing import over
from maxplore.exploit import Forecast, Report, TaskPolicy
from maxplore.exploit.acting import Known
from maxplore.exploit.rehearse import Wish
from maxplore.runs import run as running
from maxplore.runs.directory import Folder
from maxplore.runs.export import arrays
from maxplore.runs.record import Record
from maxplore.solvers.base import Policy
from tests.runs.test_run import AWKWARD, FEW, last_checkpoint, rows
from tests.test_cli import typed


class Pushing(Policy):
    """Half of the full push, always: no random action is that."""

    def __call__(self, state: jax.Array, *, key: Any = None) -> jax.Array:
        return jnp.full(1, 0.5)


def pushing(run: running.Run) -> TaskPolicy:
    """It is paid 1 at every step."""
    report = Report(20.0, (20.0,), math.nan, 20, Forecast(20.0, 20.0, 20.0))
    codecs = spaces.observations(run.env.observation_space), spaces.actions(run.env.action_space)
    return TaskPolicy(Known(Pushing()), report, *codecs, lambda s, a, s2: jnp.float32(1), key=jax.random.key(0))


def lived(path, to: int, **kwargs: Any) -> None:
    """30 steps, the second episode of them cut off; two episodes of the policy; and on."""
    with running.new(path, AWKWARD, env_kwargs=kwargs, **FEW) as run:
        run.explore(30)
        assert run.live(pushing(run), seed=7) == 20
        assert run.live(pushing(run), seed=8) == 20
        assert run.steps == 70
        run.explore(to)


def test_an_episode_of_a_policy_is_on_record_and_told(tmp_path):
    lived(tmp_path / "r", 90)
    folder = Folder(tmp_path / "r")
    with Record.read(folder.record) as record:
        told = arrays(record, *folder.spaces(folder.read_config()))
        assert record.told == {2, 3}
        assert [(each.episode, each.first_step) for each in record.episodes()] == [
            (0, 0),
            (1, 20),
            (2, 30),
            (3, 50),
            (4, 70),
        ]
        assert [each.seed for each in record.episodes()][2:4] == [7, 8]
    assert (np.flatnonzero(told["actions"][:, 0] == 0.5) == np.arange(30, 70)).all()
    explorer = maxplore.load(tmp_path / "r")
    np.testing.assert_array_equal(np.asarray(explorer.history.transitions.action)[30:70, 0], 0.5)


@pytest.mark.parametrize("kept", [0, 28, 90])
def test_a_run_with_such_episodes_goes_on_as_if_never_stopped(kept, tmp_path):
    """Whatever checkpoint there is: before them all that is on record is told again, and nothing asked."""
    lived(tmp_path / "never", 110)
    lived(tmp_path / "r", 90)
    for step, file in Folder(tmp_path / "r").all_checkpoints():
        if step > kept:
            file.unlink()
    if kept < 90:  # older ones are gone by now: the run as it was then
        with running.new(tmp_path / "then", AWKWARD, **FEW) as run:
            run.explore(kept)
            source = Folder(tmp_path / "then").checkpoint(kept)
        Folder(tmp_path / "r").checkpoint(kept).write_bytes(source.read_bytes())
    with running.resumed(tmp_path / "r") as run:
        assert run.steps == 90
        assert not [event for event in run.record.events() if event.kind == "differs"]
        run.explore(110)
    assert rows(tmp_path / "never") == rows(tmp_path / "r")
    assert last_checkpoint(tmp_path / "never") == last_checkpoint(tmp_path / "r")


def test_one_that_is_cut_short_is_not_gone_on_with(tmp_path):
    """The environment fails at its sixth step: five are kept, and the next episode is the explorer's own."""
    line = "misbehaved at step 5, in episode 0: its step failed: Zero"
    with (
        running.new(tmp_path / "r", AWKWARD, env_kwargs={"fault": "exception"}, **FEW) as run,
        pytest.raises(running.MisbehavedError, match=line),
    ):
        run.live(pushing(run), seed=7)
    with running.resumed(tmp_path / "r") as run:
        assert run.steps == 5
        run.explore(8)
        assert run.record.told == {0}
        assert [each.first_step for each in run.record.episodes()] == [0, 5]


def test_rehearsals_of_a_run(monkeypatch, tmp_path, capsys):
    """Two rounds of one wish, one episode of 10 steps each; the second after the run was closed, and then none."""
    wishes = [Wish(2, 1, mean=0.0, spread=2.0, promise=3.0, record=1.0)]
    monkeypatch.setattr(sys.modules[Wish.__module__], "boldest", lambda *_, **__: wishes)
    path = tmp_path / "r"
    small = ["--wishes", 1, "--episodes", 1, "--horizon", 10, "--solver", "gradient", "--solver-iterations", 2]
    small += ["--most-steps", 20, "--model-width", 8, "--members", 2, "--ahead", 0, "--drift", 0]
    assert typed("explore", "Pendulum-v1", "--method", "random", "--steps", 40, "--out", path) == 0
    assert typed("rehearse", path, "--rounds", 1, *small) == 0
    told = capsys.readouterr().out.splitlines()
    assert told[-2].startswith("round 1 of 1, number 2 as large as can be: 2 at best so far, 6 promised, ")
    assert told[-2].endswith(" in the mean of 1 episodes")
    assert told[-1] == f"{path}: 50 steps (10 of them now), 1 rounds in all"
    assert typed("rehearse", path, "--rounds", 2, *small) == 0
    assert typed("rehearse", path, "--rounds", 2, *small) == 0
    assert "it has had 2 rounds, and 2 are asked for" in capsys.readouterr().out
    with Record.read(path / "run.sqlite") as record:
        assert (record.steps, over(record), len(record.told)) == (60, 2, 2)
        assert sum(event.text.startswith("number 2 as large") for event in record.events()) == 2
    wishes.clear()
    assert typed("rehearse", path, "--rounds", 3, *small) == 0
    assert "nothing is promised beyond" in capsys.readouterr().out
    assert typed("resume", path) == 0, "further than it was to explore"
    assert typed("resume", path, "--steps", 65) == 0
    assert maxplore.load(path).steps == 65


@pytest.mark.parametrize(
    ("words", "line"),
    [
        (["--rounds", "0"], "rounds is 0, expected at least 1"),
        (["--wishes", "0"], "wishes is 0"),
        (["--live", "x"], "there is no setting 'live'"),
        (["--penalty-of", "3"], "penalty_of"),
    ],
)
def test_what_cannot_be_rehearsed_is_refused_in_one_line_and_nothing_is_learned(words, line, tmp_path, capsys):
    path = tmp_path / "r"
    assert typed("explore", "Pendulum-v1", "--method", "random", "--steps", 30, "--out", path) == 0
    before = rows(path)
    assert typed("rehearse", path, *words) == 2
    told = capsys.readouterr().err
    assert line in told
    assert len(told.splitlines()) == 1
    assert rows(path) == before


def test_a_run_of_discrete_spaces_has_no_wishes(tmp_path, capsys):
    path = tmp_path / "r"
    assert typed("explore", "FrozenLake-v1", "--method", "random", "--steps", 30, "--out", path) == 0
    assert typed("rehearse", path) == 2
    assert "states or actions are Discrete" in capsys.readouterr().err
