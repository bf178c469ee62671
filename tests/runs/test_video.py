"""Films hold the frames that they were given, and episodes look the same when they are played again."""

import sys
import warnings
from typing import Any

import gymnasium as gym
import imageio.v2
import numpy as np
import pytest

from maxplore import InputError
from maxplore.runs.video import film, replayed


class Dot(gym.Env):
    """A dot that starts somewhere, and goes where it is sent, until it is at the edge. It draws itself by hand."""

    metadata: dict[str, Any] = {"render_modes": ["rgb_array"], "render_fps": 10}  # noqa: RUF012
    observation_space = gym.spaces.Box(0, 63, (2,), np.int64)
    action_space = gym.spaces.MultiDiscrete([3, 3], start=[-1, -1])

    def __init__(self, size=64, render_mode=None, broken=False):
        self.size, self.render_mode, self.broken = size, render_mode, broken
        self.place = np.zeros(2, np.int64)

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.place = self.np_random.integers(20, 40, 2)
        return self.place, {}

    def step(self, action):
        self.place = self.place + 2 * action
        return self.place, 0.0, bool((self.place < 2).any()), False, {}

    def render(self):
        if self.broken:
            raise gym.error.DependencyNotInstalled("no OpenGL\nto draw with")
        picture = np.zeros((self.size, self.size + 6, 3), np.uint8)
        picture[self.place[0] - 2 : self.place[0] + 3, self.place[1] - 2 : self.place[1] + 3] = 255
        return picture


class Words(Dot):
    """What it calls a picture is none."""

    def render(self) -> Any:
        return "a dot"


class Deaf(Dot):
    """It has never heard of rendering."""

    def __init__(self, **named):
        if named:
            raise TypeError(f"unexpected keyword arguments: {named}")
        super().__init__()


KINDS = Dot, Words, Deaf


@pytest.fixture(autouse=True)
def registered():
    for kind in KINDS:
        gym.register(id=f"tests/{kind.__name__}-v0", entry_point=f"{__name__}:{kind.__name__}")
    yield
    for kind in KINDS:
        gym.registry.pop(f"tests/{kind.__name__}-v0")


@pytest.fixture(autouse=True)
def quiet(monkeypatch):
    """imageio's reader runs nothing between fork and exec."""
    monkeypatch.setenv("IMAGEIO_FFMPEG_NO_PREVENT_SIGINT", "1")


def read(path):
    """The frames of a film, and what imageio says of it."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ResourceWarning)  # imageio leaves its pipes open
        reader: Any = imageio.v2.get_reader(path, "FFMPEG")
        frames, about = [frame for frame in reader], reader.get_meta_data()  # noqa: C416  (its length is infinite)
        reader.close()
    return np.stack(frames), about


def centre(picture):
    """Where the dot is."""
    return np.argwhere(picture.mean(-1) > 128).mean(0)


def test_a_film_of_an_episode_shows_it(tmp_path):
    env, path = gym.make("tests/Dot-v0"), tmp_path / "dot.mp4"
    actions = [np.array(step) for step in [(1, 0), (1, 1), (0, 1), (-1, -1)] * 3]
    places = [env.reset(seed=5)[0], *(env.step(action)[0] for action in actions)]
    film(path, replayed("tests/Dot-v0", {}, 5, actions), 10)
    frames, about = read(path)
    assert frames.shape == (13, 64, 70, 3)
    assert about["fps"] == 10
    for frame, place in zip(frames, places, strict=True):
        np.testing.assert_allclose(centre(frame), place, atol=0.5)
    assert [own.name for own in path.parent.iterdir()] == ["dot.mp4"]


def test_it_stops_where_the_episode_does():
    frames = list(replayed("tests/Dot-v0", {"size": 65}, 5, [np.array([-1, 0])] * 100))
    assert frames[0].shape == (65, 71, 3)
    assert 10 < len(frames) < 25


def test_mountain_car_draws_itself(tmp_path):
    actions = np.linspace(-1, 1, 7, dtype=np.float32)[:, None]
    frames = list(replayed("maxplore/MountainCar-v0", {"noise": 0.1, "render_mode": None}, 3, actions))
    assert len(frames) == 8
    film(tmp_path / "car.mp4", frames, 30)
    shown, _ = read(tmp_path / "car.mp4")
    assert shown.shape == (8, 400, 600, 3)
    assert np.abs(shown.astype(int) - np.stack(frames)).mean() < 4


@pytest.mark.parametrize(("height", "width"), [(33, 47), (32, 47), (33, 48), (1, 1)])
def test_odd_sizes_are_padded_not_stretched(height, width, tmp_path):
    frame = np.full((height, width, 3), 200, np.uint8)
    film(tmp_path / "odd.mp4", [frame] * 3, 5)
    shown, _ = read(tmp_path / "odd.mp4")
    assert shown.shape == (3, height + height % 2, width + width % 2, 3)
    if height > 1:
        inside = shown[:, : height - 2, : width - 2].astype(int)
        assert np.abs(inside - 200).max() < 12


def test_what_was_there_stays_until_the_film_is_whole(tmp_path):
    path, frame = tmp_path / "it.mp4", np.zeros((16, 16, 3), np.uint8)
    path.write_text("the old one")

    def cut(error):
        yield frame
        raise error

    for error in (KeyboardInterrupt, BrokenPipeError):
        with pytest.raises((KeyboardInterrupt, InputError)):
            film(path, cut(error), 5)
        assert path.read_text() == "the old one"
        assert list(tmp_path.iterdir()) == [path]
    film(path, [frame] * 4, 5)
    assert len(read(path)[0]) == 4


@pytest.mark.parametrize("frames", [1, 1000])  # as many as it takes to fill the pipe
def test_ffmpeg_is_believed_when_it_fails(frames, tmp_path, monkeypatch):
    program = tmp_path / "ffmpeg"
    program.write_text("#!/bin/sh\necho 'No space left on device\nand more' >&2\nexit 1\n")
    program.chmod(0o700)
    monkeypatch.setenv("IMAGEIO_FFMPEG_EXE", str(program))
    with pytest.raises(InputError, match=r"cannot be written \(No space left on device\); nothing") as caught:
        film(tmp_path / "it.mp4", [np.zeros((64, 64, 3), np.uint8)] * frames, 5)
    assert "\n" not in str(caught.value)
    assert list(tmp_path.iterdir()) == [program]


BLACK = np.zeros((8, 8, 3), np.uint8)


@pytest.mark.parametrize(
    ("frames", "fps", "message"),
    [
        ([], 5, "frames is empty, expected at least one"),
        ([BLACK], 0, "fps is 0, expected at least 1"),
        ([BLACK[..., 0]], 5, r"a frame is uint8\[8, 8\], expected uint8\[height, width, 3\]"),
        ([BLACK / 1.0], 5, r"a frame is float64\[8, 8, 3\], expected uint8\[height, width, 3\]"),
        ([BLACK, BLACK[1:]], 5, r"a frame is \[7, 8, 3\], expected \[8, 8, 3\], as the first"),
    ],
)
def test_frames_that_make_no_film_are_refused(frames, fps, message, tmp_path):
    with pytest.raises(InputError, match=message):
        film(tmp_path / "it.mp4", frames, fps)
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize(
    ("name", "kwargs", "message"),
    [
        ("tests/Words-v0", {}, "tests/Words-v0 draws a str with render_mode='rgb_array', expected an array"),
        ("tests/Deaf-v0", {}, "tests/Deaf-v0 cannot be made and drawn"),
        ("tests/Dot-v0", {"broken": True}, "DependencyNotInstalled: no OpenGL to draw with"),
        ("tests/Nobody-v0", {}, "tests/Nobody-v0 cannot be made and drawn"),
        ("maxplore/Chain-v0", {}, "maxplore/Chain-v0 draws a str with"),
    ],
)
def test_an_environment_that_cannot_draw_is_told_in_one_line(name, kwargs, message):
    with pytest.raises(InputError, match=message) as caught:
        next(replayed(name, kwargs, 0, []))
    assert "\n" not in str(caught.value)


def test_without_ffmpeg_one_is_told_what_to_install(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "imageio_ffmpeg", None)
    with pytest.raises(InputError, match=r"pip install maxplore\[video\]"):
        film(tmp_path / "it.mp4", [BLACK], 5)
    assert not list(tmp_path.iterdir())
