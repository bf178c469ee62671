"""TensorBoard's event files, written without TensorBoard.

A file is a row of records (TFRecord): a length, its checksum, data, its checksum. The data is an `Event` in protocol
buffers; the first tells the version of the format, each of the others a step and its numbers.
"""

import os
import struct
from collections.abc import Mapping
from pathlib import Path
from time import time as now
from time import time_ns

import numpy as np

from maxplore.errors import InputError

VERSION = b"brain.Event:2"


def _entry(byte: int) -> int:
    for _ in range(8):
        byte = byte >> 1 ^ (0x82F63B78 if byte & 1 else 0)  # Castagnoli's polynomial, bits reversed
    return byte


TABLE = tuple(_entry(byte) for byte in range(256))


def crc32c(data: bytes) -> int:
    """The CRC-32C checksum.

    >>> hex(crc32c(b"123456789"))
    '0xe3069283'
    """
    crc = 0xFFFFFFFF
    for byte in data:
        crc = TABLE[(crc ^ byte) & 0xFF] ^ crc >> 8
    return crc ^ 0xFFFFFFFF


def framed(data: bytes) -> bytes:
    """Data as a record of the file."""
    length = struct.pack("<Q", len(data))
    return length + _masked(length) + data + _masked(data)


def event(time: float, step: int = 0, *, version: bytes = b"", values: Mapping[str, float] | None = None) -> bytes:
    """An `Event`: wall_time = 1, step = 2, file_version = 3, summary = 5. A number that is 0 is left out, as protocol
    buffers have it."""
    data = (b"\x09" + struct.pack("<d", time) if time else b"") + (b"\x10" + _varint(step) if step else b"")
    if version:
        data += _field(3, version)
    if values is not None:
        data += _field(5, b"".join(_field(1, _value(name, value)) for name, value in values.items()))
    return data


class Scalars:
    """A folder's newest event file. Each `write` is there for TensorBoard to read as soon as it returns."""

    def __init__(self, folder: Path) -> None:
        self.path = (
            folder / f"events.out.tfevents.{time_ns()}.{os.getpid()}"
        )  # TensorBoard reads them by name, in order
        try:
            folder.mkdir(parents=True, exist_ok=True)
            self._file = self.path.open("xb", buffering=0)
        except OSError as error:
            raise InputError(f"{self.path} cannot be written ({error.strerror}): choose another folder") from error
        self._append(event(now(), version=VERSION))

    def write(self, step: int, values: Mapping[str, float], *, time: float | None = None) -> None:
        """Numbers by name at a step; NaN is written as such. `time` is in seconds since 1970, now unless given."""
        self._append(event(now() if time is None else time, step, values=values))

    def close(self) -> None:
        """Done with."""
        self._file.close()

    def __enter__(self) -> "Scalars":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _append(self, data: bytes) -> None:
        record = framed(data)
        try:
            whole = self._file.write(record) == len(record)
        except OSError as error:
            raise InputError(f"{self.path} cannot be written ({error.strerror}): make room on the disk") from error
        if not whole:
            raise InputError(f"{self.path} cannot be written in full: make room on the disk")


def _masked(data: bytes) -> bytes:
    """The checksum as TFRecord stores it, so that data with checksums in it is none the weaker."""
    crc = crc32c(data)
    return struct.pack("<I", ((crc >> 15 | crc << 17) + 0xA282EAD8) & 0xFFFFFFFF)


def _varint(number: int) -> bytes:
    """Seven bits a byte, the lowest first; negative numbers as 64 bits."""
    number &= 0xFFFFFFFFFFFFFFFF
    low = [number >> shift & 0x7F for shift in range(0, max(number.bit_length(), 1), 7)]
    return bytes([byte | 0x80 for byte in low[:-1]] + low[-1:])


def _field(number: int, data: bytes) -> bytes:
    """A field of so many bytes."""
    return _varint(number << 3 | 2) + _varint(len(data)) + data


def _value(name: str, value: float) -> bytes:
    """A `Summary.Value`: tag = 1, simple_value = 2."""
    with np.errstate(over="ignore"):  # what a float32 cannot hold is infinite
        return _field(1, name.encode()) + b"\x15" + np.array(value, "<f4").tobytes()
