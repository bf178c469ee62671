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


def pushing(whose: running.Run | maxplore.Explorer) -> TaskPolicy:
    """It is paid 1 at every step."""
    report = Report(20.0, (20.0,), math.nan, 20, Forecast(20.0, 20.0, 20.0))
    env = whose.env if isinstance(whose, running.Run) else whose
    codecs = spaces.observations(env.observation_space), spaces.actions(env.action_space)
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


@pytest.mark.parametrize(("kept", "parts"), [(0, False), (49, True), (84, False)])
def test_a_run_with_such_episodes_goes_on_as_if_never_stopped(kept, parts, tmp_path, monkeypatch):
    """Whatever checkpoint there is, one in the midst of them, too: all that is on record is told again, and the
    explorer asked only where it was asked."""
    lived(tmp_path / "never", 110, parts=parts)
    lived(tmp_path / "r", 90, parts=parts)
    for step, file in Folder(tmp_path / "r").all_checkpoints():
        if step > kept:
            file.unlink()
    if not Folder(tmp_path / "r").checkpoint(kept).exists():  # older ones are gone by now: as it was then
        monkeypatch.setattr(running, "KEPT", 99)
        lived(tmp_path / "then", 90, parts=parts)
        source = Folder(tmp_path / "then").checkpoint(kept)
        Folder(tmp_path / "r").checkpoint(kept).write_bytes(source.read_bytes())
    asked, ask = list[int](), maxplore.Explorer.ask

    def noted(self: maxplore.Explorer, observation: Any) -> Any:
        asked.append(self.steps)
        return ask(self, observation)

    monkeypatch.setattr(maxplore.Explorer, "ask", noted)
    with running.resumed(tmp_path / "r") as run:
        assert run.steps == 90
        assert asked == [step for step in range(kept, 90) if not 30 <= step < 70]
        assert not [event for event in run.record.events() if event.kind == "differs"]
        run.explore(110)
    assert rows(tmp_path / "never") == rows(tmp_path / "r")
    assert last_checkpoint(tmp_path / "never") == last_checkpoint(tmp_path / "r")


def test_they_come_on_top_of_what_the_run_was_to_explore(tmp_path):
    with running.new(tmp_path / "r", AWKWARD, steps=50, **FEW) as run:
        run.explore(10)
        run.live(pushing(run), seed=7)
        assert (run.steps, run.record.aimed) == (30, 70)


@pytest.mark.parametrize(
    ("fault", "why"), [("exception", "Zero"), ("no reward", "reward is 'much'"), ("nan", "observation")]
)
def test_one_that_is_cut_short_is_not_gone_on_with(fault, why, tmp_path):
    """The environment fails at its sixth step: five are kept, and the next episode is the explorer's own."""
    with (
        running.new(tmp_path / "r", AWKWARD, env_kwargs={"fault": fault}, **FEW) as run,
        pytest.raises(running.MisbehavedError, match=f"at step 5, in episode 0: its step failed: {why}"),
    ):
        run.live(pushing(run), seed=7)
    with running.resumed(tmp_path / "r") as run:
        assert run.steps == 5
        run.explore(8)
        assert run.record.told == {0}
        assert [each.first_step for each in run.record.episodes()] == [0, 5]


SMALL = (
    *("--wishes", 1, "--episodes", 1, "--horizon", 10, "--solver", "gradient", "--solver-iterations", 2),
    *("--most-steps", 20, "--model-width", 8, "--members", 2, "--ahead", 0, "--drift", 0),
)


@pytest.fixture
def wishes(monkeypatch):
    """What is wished for in every round, whatever the models say."""
    own = [Wish(1, 1, mean=0.0, spread=2.0, promise=3.0, record=1.0)]
    monkeypatch.setattr(sys.modules[Wish.__module__], "boldest", lambda *_, **__: own)
    return own


def test_rehearsals_of_a_run(wishes, tmp_path, capsys):
    """Two rounds of one wish, one episode of 10 steps each; the second after the run was closed, and then none."""
    path = tmp_path / "r"
    assert typed("explore", "Pendulum-v1", "--method", "random", "--steps", 40, "--out", path) == 0
    assert typed("rehearse", path, "--rounds", 1, *SMALL) == 0
    told = capsys.readouterr().out.splitlines()
    assert told[-2].startswith("round 1 of 1, number 1 as large as can be: 2 at best so far, 6 promised, ")
    assert told[-2].endswith(" in the mean of 1 episodes")
    assert told[-1] == f"{path}: 50 steps (10 of them now), 1 rounds in all"
    assert typed("rehearse", path, "--rounds", 2, *SMALL) == 0
    assert typed("rehearse", path, "--rounds", 2, *SMALL) == 0
    assert f"it has had 2 rounds; for more of them: maxplore rehearse {path} --rounds 6" in capsys.readouterr().out
    with Record.read(path / "run.sqlite") as record:
        assert (record.steps, record.aimed, over(record), len(record.told)) == (60, 60, 2, 2)
        assert sum(event.text.startswith("number 1 as large") for event in record.events()) == 2
    wishes.clear()
    assert typed("rehearse", path, "--rounds", 3, *SMALL) == 0
    assert "nothing is promised beyond" in capsys.readouterr().out
    assert typed("resume", path, "--steps", 65) == 0
    assert maxplore.load(path).steps == 65


def test_rehearsals_that_were_cut_short_begin_the_round_anew(wishes, tmp_path, capsys, monkeypatch):
    """The environment fails at the sixth step of every episode: five are kept each time, and no round is over."""
    monkeypatch.setattr(maxplore.Explorer, "task_model", lambda *_, **__: None)
    monkeypatch.setattr(maxplore.Explorer, "exploit", lambda self, *_, **__: pushing(self))
    path = tmp_path / "r"
    with running.new(path, AWKWARD, env_kwargs={"fault": "exception"}, **FEW) as run:
        run.explore(4)
    for number in (1, 2):
        assert typed("rehearse", path, *SMALL) == 3
        assert capsys.readouterr().err.endswith(f"every step before is kept: maxplore rehearse {path}\n")
        with Record.read(path / "run.sqlite") as record:
            assert (record.steps, over(record), len(record.told)) == (4 + 5 * number, 0, number)


@pytest.mark.parametrize(
    ("words", "line"),
    [
        (["--rounds", "0"], "rounds is 0, expected at least 1"),
        (["--wishes", "0"], "wishes is 0"),
        (["--live", "x"], "there is no setting 'live'"),
        (["--attempts", "2"], "attempts is 2, expected 1"),
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
