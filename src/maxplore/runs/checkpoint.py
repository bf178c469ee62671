"""One file with everything in it: named arrays, and a plain description as JSON among them.

It is put in place all at once, so that a reader finds the old one or the new one. Reading it runs no code of its own.
"""

import hashlib
import json
import os
import zipfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any, BinaryIO

import jax
import jax.numpy as jnp
import numpy as np

from maxplore.errors import InputError
from maxplore.runs import files

FORMAT = 2
"""Of the file; another one is refused, not guessed at."""

ABOUT, DIGEST = "about", "digest"

FINITE = ("ensemble", "mind")
"""Groups of a model's arrays, which no fit leaves with NaN in them."""


def write(path: Path, about: Mapping[str, Any], groups: Mapping[str, Any]) -> None:
    """Put a description and groups of arrays (pytrees) in place of what is at `path`."""
    arrays = {
        f"{name}/{k}": np.asarray(leaf) for name, tree in groups.items() for k, leaf in enumerate(jax.tree.leaves(tree))
    }
    text = json.dumps({"format": FORMAT, **about}, allow_nan=False)
    arrays[ABOUT] = np.frombuffer(text.encode(), np.uint8)
    arrays[DIGEST] = digest(arrays)
    with files.placed(path) as file:
        np.savez(file, allow_pickle=False, **arrays)


def digest(arrays: Mapping[str, np.ndarray]) -> np.ndarray:
    """Of names and contents, whatever their order."""
    own = hashlib.blake2b(digest_size=16)
    for name in sorted(arrays.keys() - {DIGEST}):
        own.update(f"{name} {arrays[name].dtype} {arrays[name].shape} ".encode())
        own.update(np.ascontiguousarray(arrays[name]).reshape(-1).view(np.uint8).data)
    return np.frombuffer(own.digest(), np.uint8)


def _check_plain(stream: BinaryIO) -> None:
    """A `ValueError` unless what is packed is no larger than the file: none of our files is compressed."""
    with zipfile.ZipFile(stream) as packed:
        parts = packed.infolist()
        if any(part.compress_type != zipfile.ZIP_STORED or part.flag_bits & 1 for part in parts):
            raise ValueError("it is compressed or encrypted")
        if sum(part.file_size for part in parts) > stream.seek(0, os.SEEK_END):
            raise ValueError("it claims to hold more than it does")
    stream.seek(0)


class Checkpoint:
    """A file that was read: the description, and arrays that are handed out by group."""

    def __init__(self, path: Path) -> None:
        """An `InputError` if there is no such file, or if it is none of maxplore's."""
        self.path = path
        try:
            with open(path, "rb", opener=files.plain) as stream:
                _check_plain(stream)
                with np.load(stream, allow_pickle=False) as file:
                    self._arrays = {name: file[name] for name in file.files}
            self.about: dict[str, Any] = json.loads(self._arrays[ABOUT].tobytes())
            written = self.about["format"]
            if written == FORMAT and not np.array_equal(self._arrays[DIGEST], digest(self._arrays)):
                raise ValueError("its digest is of other arrays")
        except FileNotFoundError:
            raise InputError(f"there is no {path}: nothing was saved there") from None
        except InputError:
            raise
        except Exception as error:  # a file from anywhere can break a reader in many ways
            raise self.damaged(f"{type(error).__name__}: {error}") from None
        if written != FORMAT:
            raise InputError(
                f"{path} has format {written!r}, expected {FORMAT}: it is from another version of maxplore"
            )

    def damaged(self, why: str) -> InputError:
        """What to raise when the file is not what it should be."""
        return InputError(f"{self.path} is no file of maxplore's, or damaged ({why})")

    def has(self, group: str) -> bool:
        """Whether there are arrays of this name."""
        return f"{group}/0" in self._arrays

    def filled(self, group: str, like: Any) -> Any:
        """The arrays of a group in the place of those of `like`, whose shapes and types they must have."""
        leaves, structure = jax.tree.flatten(like)
        found = [self._arrays.get(f"{group}/{k}") for k in range(len(leaves))]
        if f"{group}/{len(leaves)}" in self._arrays:
            raise self.damaged(f"{group} has more than the {len(leaves)} arrays expected")
        for k, (own, wanted) in enumerate(zip(found, leaves, strict=True)):
            if own is None or own.shape != wanted.shape or own.dtype != wanted.dtype:
                got = "nothing" if own is None else f"{own.dtype}{list(own.shape)}"
                raise self.damaged(f"{group}/{k} is {got}, expected {wanted.dtype}{list(wanted.shape)}")
            if group in FINITE and own.dtype.kind == "f" and np.isnan(own).any():
                raise self.damaged(f"{group}/{k} has NaN in it")
        kept = (isinstance(wanted, np.ndarray) for wanted in leaves)  # what is NumPy's stays so, to the last bit
        return jax.tree.unflatten(
            structure, [own if is_numpy else jnp.asarray(own) for own, is_numpy in zip(found, kept, strict=True)]
        )

    def array(self, group: str, number: int) -> np.ndarray:
        """One array of a group."""
        try:
            return self._arrays[f"{group}/{number}"]
        except KeyError:
            raise self.damaged(f"{group}/{number} is missing") from None
