"""A study is data: every combination once, under a name of its own, and one line about anything that makes no sense."""

import re
from pathlib import Path

import pytest

from maxplore import InputError
from maxplore.sweep import study
from maxplore.sweep.trial import Trial

ROOT = Path(__file__).parents[2]
LEAST = 'environments = ["maxplore/MountainCar-v0"]\nsteps = 10\n'


def written(tmp_path: Path, text: str) -> study.Study:
    (tmp_path / "mine.toml").write_text(text)
    return study.read(tmp_path / "mine.toml")


def test_the_least_of_a_study_is_one_run(tmp_path):
    own = written(tmp_path, LEAST)
    assert own == ("mine", {"MountainCar-v0-max-0": Trial("maxplore/MountainCar-v0", "max", 0, 10)})
    study.check(own.trials)


def test_every_combination_is_there_once():
    own = study.read(ROOT / "examples" / "study.toml")
    study.check(own.trials)
    assert len(own.trials) == 2 * (2 + 1) * 3, "environments x (methods as usual, and MAX with ten members) x seeds"
    assert list(own.trials)[:3] == [
        "MountainCar-v0-max-usual-100",
        "MountainCar-v0-random-usual-100",
        "MountainCar-v0-max-ten-members-100",
    ]
    assert own.trials["noisy-car-max-ten-members-102"] == Trial(
        "maxplore/MountainCar-v0",
        "max",
        102,
        400,
        env_kwargs={"noise": 0.1},
        settings={"warm_up": 40, "members": 10},
    )
    solving = own.trials["MountainCar-v0-random-usual-101"]
    assert solving.asked == [("capture-flag", 300), ("capture-flag", 600)]


def test_what_an_environment_says_of_itself_counts(tmp_path):
    text = """
        steps = 10
        preset = "smoke"
        seeds = [7, 3]
        settings = { members = 4, warm_up = 5 }
        [[environments]]
        id = "Pendulum-v1"
        [[environments]]
        id = "maxplore/Chain-v0"
        name = "short"
        kwargs = { length = 5 }
        steps = 20
        preset = "fast"
        settings = { members = 3 }
        tasks = ["chain"]
        solving = { members = 2 }
    """
    trials = written(tmp_path, text).trials
    assert list(trials) == ["Pendulum-v1-max-7", "short-max-7", "Pendulum-v1-max-3", "short-max-3"]
    short = trials["short-max-7"]
    assert (short.steps, short.preset, short.settings) == (20, "fast", {"members": 3, "warm_up": 5})
    assert (short.asked, short.solving, short.episodes) == ([("chain", 20)], {"members": 2}, 3)
    assert (trials["Pendulum-v1-max-3"].preset, trials["Pendulum-v1-max-3"].tasks) == ("smoke", ())


def test_names_are_those_of_folders_anywhere(tmp_path):
    trials = written(
        tmp_path, 'steps = 1\nenvironments = [{id = "my.pkg:Odd/It\'s ü-v0", name = "../a b/…"}, "x/Y-v0"]'
    ).trials
    assert list(trials) == ["a-b-max-0", "x-Y-v0-max-0"]
    assert all(re.fullmatch(r"[A-Za-z0-9][\w.-]*", name) for name in trials)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("steps = 10", "environments is missing, expected at least one"),
        ("steps = 10\nenvironments = []", "environments is empty, expected at least one"),
        ('steps = 10\nenvironments = "CartPole-v1"', "environments is 'CartPole-v1', expected a list"),
        ("steps = 10\nenvironments = [3]", "environments has 3, expected the id of one, or a table with id"),
        ("steps = 10\nenvironments = [{}]", "an environment has id None, expected one such as"),
        ('steps = 10\nenvironments = ["a", "a"]', "environments has 'a' twice, expected each once"),
        ('steps = 10\nenvironments = ["a/b", "a-b"]', "two trials would be called a-b-max-0"),
        ('steps = 10\nenvironments = ["A", "a"]', "two trials would be called a-max-0"),
        ('steps = 10\nenvironments = ["' + "a" * 200 + '"]', "expected at most 150 letters"),
        ('steps = 10\nenvironments = ["..."]', "name is '...', expected a word"),
        ('environments = ["a"]', "steps is missing, expected how long each run is"),
        (LEAST.replace("10", "0"), "steps is 0, expected a whole number of at least 1"),
        (LEAST.replace("10", "1e3"), "steps is 1000.0, expected a whole number"),
        (LEAST + "step = 3", "'step' is nothing that the study has, expected steps"),
        (LEAST + "colour = 3", "'colour' is nothing that the study has, expected environments or methods or"),
        (LEAST + "methods = []", "methods is empty, expected at least one"),
        (LEAST + 'methods = ["max", "maxx"]', "methods has 'maxx', expected one of max, tvax"),
        (LEAST + 'methods = ["max", "max"]', "methods has 'max' twice"),
        (LEAST + 'methods = "max"', "methods is 'max', expected a list"),
        (LEAST + "seeds = 0", "seeds is 0, expected a whole number of at least 1"),
        (LEAST + "seeds = true", "seeds is True, expected a whole number"),
        (LEAST + "seeds = []", "seeds is empty, expected at least one"),
        (LEAST + "seeds = [1, 1]", "seeds has '1' twice"),
        (LEAST + "seeds = [-1]", "seeds has -1, expected whole numbers from 0"),
        (LEAST + "seeds = [1]\nfirst_seed = 3", "first_seed is given beside a list of seeds"),
        (LEAST + 'first_seed = "a"', "first_seed is 'a', expected a whole number"),
        (LEAST + "seeds = 1000000", "seeds is 1000000, expected at most 100000"),
        (LEAST + 'methods = ["max", "random"]\nseeds = 60000', "there are 120000 trials, expected at most 100000"),
        (LEAST + 'preset = "huge"', "preset has 'huge', expected one of fast, tasks, paper, smoke"),
        (LEAST + "settings = 3", "settings is 3, expected a table"),
        (LEAST + "[settings]\nmembers = nan", "settings.members is nan, expected a number"),
        (LEAST + "[settings]\nmembers = 2020-01-01", "expected a number, a word, true or false"),
        (LEAST + "variations = []", "variations is empty, expected at least one, or none of this"),
        (LEAST + "variations = [3]", "variations has 3, expected tables"),
        (LEAST + "[[variations]]", "name is '', expected a word"),
        (LEAST + '[[variations]]\nname = "a"\n[[variations]]\nname = "a"', "variations has 'a' twice"),
        (
            LEAST + '[[variations]]\nname = "a"\nmethods = ["tvax"]',
            "methods of variation a has 'tvax', expected one of max",
        ),
        (LEAST + 'tasks = ["fly"]', "tasks has 'fly', expected one of running"),
        (LEAST + "after = [5]", "after is given without tasks, expected both or none"),
        (LEAST + 'tasks = ["capture-flag"]\nafter = [11]', "after has 11, expected at most the 10 steps of a run"),
        (LEAST + 'tasks = ["capture-flag"]\nafter = []', "after is empty with tasks, expected the steps"),
        (LEAST + "steps = 3", "is no TOML"),
        (LEAST.replace("10", "1" * 5000), "is no TOML (Exceeds the limit"),
    ],
)
def test_bad_studies_are_one_line(tmp_path, text, message):
    with pytest.raises(InputError, match=re.escape(message)) as refused:
        written(tmp_path, text)
    assert str(refused.value).startswith(str(tmp_path / "mine.toml"))
    assert "\n" not in str(refused.value)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ('environments = ["maxplore/MountainCar-v9"]\nsteps = 10', "is it one of maxplore/MountainCar-v0"),
        (LEAST + "[settings]\nmember = 3", "there is no setting 'member' here, expected one of: members"),
        (LEAST + 'methods = ["eb-dqn"]', "method is 'eb-dqn', expected one of max"),
        (LEAST + 'tasks = ["running"]', "expected the spaces of maxplore/HalfCheetah-v0"),
        (LEAST + 'tasks = ["capture-flag"]\nsolving = { member = 3 }', "there is no setting 'member'"),
    ],
)
def test_what_no_run_could_begin_with_is_told_before_any_does(tmp_path, text, message):
    own = written(tmp_path, text)
    with pytest.raises(InputError, match=re.escape(message)) as refused:
        study.check(own.trials)
    assert str(refused.value).startswith("MountainCar-v")
