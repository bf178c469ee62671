"""Films of what an environment did."""

import os
import subprocess
import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping
from itertools import chain, islice
from pathlib import Path
from typing import Any

import gymnasium as gym
import numpy as np

from maxplore.errors import InputError
from maxplore.runs import files


def film(path: Path, frames: Iterable[np.ndarray], fps: int) -> None:
    """Write frames, `[height, width, 3]` of uint8, as an MP4 in place of what is at `path`.

    The format wants even sizes: an odd one gets a black line at the bottom or at the right.
    """
    if fps < 1:
        raise InputError(f"fps is {fps}, expected at least 1")
    program = check_film()
    rest = iter(frames)
    first = list(islice(rest, 1))
    if not first:
        raise InputError("frames is empty, expected at least one")
    shape = _checked(first[0], np.shape(first[0])).shape
    taken = f"-y -loglevel error -f rawvideo -pix_fmt rgb24 -s {shape[1]}x{shape[0]} -r {fps} -i -".split()
    given = ["-vf", "pad=ceil(iw/2)*2:ceil(ih/2)*2", "-vcodec", "libx264", "-pix_fmt", "yuv420p", "-f", "mp4"]
    # imageio would run Python between fork and exec, where JAX's threads can make it hang, and overlook a failure.
    with files.placed(path) as draft:
        command = [program, *taken, *given, os.path.abspath(draft.name)]
        with subprocess.Popen(command, stdin=subprocess.PIPE, stderr=subprocess.PIPE, process_group=0) as ffmpeg:
            assert ffmpeg.stdin is not None
            try:
                for frame in chain(first, rest):
                    data = _checked(frame, shape).tobytes()
                    try:
                        ffmpeg.stdin.write(data)
                    except BrokenPipeError:
                        break  # it gave up, and has said why
            finally:
                _, said = ffmpeg.communicate()
        if ffmpeg.returncode:
            why = said.decode(errors="replace").strip().partition("\n")[0] or f"FFmpeg ended with {ffmpeg.returncode}"
            raise InputError(f"{path} cannot be written ({why}); nothing of it is left")


def check_film() -> str:
    """The program that films, or an `InputError`."""
    try:
        import imageio_ffmpeg

        return imageio_ffmpeg.get_ffmpeg_exe()
    except (ImportError, RuntimeError) as error:
        raise InputError(f"there is no FFmpeg to be had ({error}): pip install maxplore[video]") from error


def replayed(env_id: str, env_kwargs: Mapping[str, Any], seed: int, actions: Iterable[Any]) -> Iterator[np.ndarray]:
    """Frames of an episode that is played again from its seed and its actions: one at the start, one after each action,
    until the actions or the episode end."""
    kwargs: dict[str, Any] = {**env_kwargs, "render_mode": "rgb_array", "disable_env_checker": True}
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # it may draw what it does not declare; if not, that is said below
            env = gym.make(env_id, **kwargs)
    except (Exception, SystemExit) as error:  # the environment's own
        raise _undrawn(env_id, error) from error
    try:
        _blamed(env_id, lambda: env.reset(seed=seed))
        yield _drawn(env, env_id)
        for action in actions:
            _, _, terminated, truncated, _ = _blamed(env_id, lambda action=action: env.step(action))
            yield _drawn(env, env_id)
            if terminated or truncated:
                return
    finally:
        env.close()


def _blamed(env_id: str, do: Callable[[], Any]) -> Any:
    """What it gives, or an `InputError` that names the environment."""
    try:
        return do()
    except (Exception, SystemExit) as error:  # the environment's own
        raise InputError(f"{env_id} failed when it was replayed ({type(error).__name__}: {error})") from error


def _drawn(env: gym.Env[Any, Any], env_id: str) -> np.ndarray:
    try:
        picture: Any = env.render()
    except (Exception, SystemExit) as error:  # the environment's own, say for want of OpenGL
        raise _undrawn(env_id, error) from error
    if not isinstance(picture, np.ndarray):
        raise InputError(f"{env_id} draws a {type(picture).__name__} with render_mode='rgb_array', expected an array")
    return picture


def _undrawn(env_id: str, error: BaseException) -> InputError:
    return InputError(
        f"{env_id} cannot be made and drawn with render_mode='rgb_array' ({type(error).__name__}: {error})"
    )


def _checked(frame: Any, shape: tuple[int, ...]) -> np.ndarray:
    """The frame, or an `InputError` if it is none, or not like the first."""
    own = np.asarray(frame)
    if own.ndim != 3 or own.shape[-1] != 3 or own.dtype != np.uint8:
        raise InputError(f"a frame is {own.dtype}{list(own.shape)}, expected uint8[height, width, 3]")
    if own.shape != shape:
        raise InputError(f"a frame is {list(own.shape)}, expected {list(shape)}, as the first")
    return own
