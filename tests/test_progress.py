"""What is said while an environment is explored."""

import gymnasium as gym

from maxplore import Explorer
from maxplore.progress import shown


def test_every_round_is_told_once_and_as_it_comes():
    env = gym.make("maxplore/MountainCar-v0")
    explorer = Explorer(env.observation_space, env.action_space, preset="smoke", solver="icem")
    heard: list[tuple[int, float]] = []
    explorer.explore(env, 61, watch=lambda row: heard.append((explorer.steps, row["step"])))
    assert heard == [(11, 10.0), (36, 35.0), (61, 60.0)]
    explorer.explore(env, 3, watch=lambda row: heard.append((explorer.steps, row["step"])))
    assert len(heard) == 3, "what was told is not told again"


def test_a_bar_is_shown_where_it_is_wanted(capsys):
    row = {"step": 10.0, "utility": 0.5, "saturation": float("nan"), "error": 0.1, "coverage": 7.0}
    for wanted, words in ((True, "utility 0.50, model error 0.1, coverage 7.00"), (None, ""), (False, "")):
        with shown(20, wanted=wanted, watch=None) as show:
            for done in range(1, 21):
                show(done, row if done > 10 else None)
        said = capsys.readouterr()
        assert said.out == ""
        assert words in " ".join(said.err.split())
        assert wanted or not said.err.strip()
