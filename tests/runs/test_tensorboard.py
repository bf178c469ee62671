"""Event files are what TensorBoard reads, byte for byte."""

import math
import struct
from types import SimpleNamespace

import pytest

from maxplore import InputError
from maxplore.runs.tensorboard import Scalars, crc32c, event, framed


def records(path):
    """The data of each record; both checksums are checked."""
    content, at = path.read_bytes(), 0
    while at < len(content):
        (length,) = struct.unpack_from("<Q", content, at)
        data = content[at + 12 : at + 12 + length]
        for place, covered in ((at + 8, content[at : at + 8]), (at + 12 + length, data)):
            (stored,) = struct.unpack_from("<I", content, place)
            unmasked = (stored - 0xA282EAD8) & 0xFFFFFFFF
            assert (unmasked >> 17 | unmasked << 15) & 0xFFFFFFFF == crc32c(covered)
        yield data
        at += 16 + length


def fields(data):
    """The fields of a protocol buffer: their numbers, and what they hold."""
    at = 0

    def varint():
        nonlocal at
        number = shift = 0
        while True:
            byte = data[at]
            number, shift, at = number | (byte & 0x7F) << shift, shift + 7, at + 1
            if byte < 0x80:
                return number

    found = []
    while at < len(data):
        tag = varint()
        kind = tag & 7
        if kind == 0:
            found.append((tag >> 3, varint()))
        else:
            size = {1: 8, 5: 4}.get(kind) or varint()
            found.append((tag >> 3, data[at : at + size]))
            at += size
    return found


def told(data):
    """An event's time, step, and numbers by name or version."""
    own = dict(fields(data))
    step = own.get(2, 0)
    values = {}
    for _, value in fields(own.get(5, b"")):
        parts = dict(fields(value))
        values[parts[1].decode()] = struct.unpack("<f", parts[2])[0]
    time = struct.unpack("<d", own[1])[0] if 1 in own else 0.0
    return time, step - (1 << 64 if step >> 63 else 0), own.get(3, values)


@pytest.mark.parametrize(
    ("data", "checksum"),
    [
        (b"", 0),
        (b"123456789", 0xE3069283),
        (bytes(32), 0x8A9136AA),  # this and those that follow are from RFC 3720, B.4
        (b"\xff" * 32, 0x62A8AB43),
        (bytes(range(32)), 0x46DD794E),
        (bytes(range(31, -1, -1)), 0x113FDB5C),
    ],
)
def test_checksums_are_the_known_ones(data, checksum):
    assert crc32c(data) == checksum


# Written once by tensorboardX 2.6.5, and by protobuf's own classes, for the same events.
VERSION = "1800000000000000a37f4b220900001040fc54d9411a0d627261696e2e4576656e743a32338d2fe9"
STEP = (
    "4a00000000000000af77dbb00900006040fc54d94110ac022a3c0a110a0a6d6f64656c2f6c6f7373150000003f0a0f0a08636f766572616765"
    "15000040c00a0b0a047a65726f15000000000a090a02c3a9150000807fd7588453"
)


def test_the_bytes_are_those_that_tensorboard_writes():
    assert framed(event(1700000000.25, version=b"brain.Event:2")).hex() == VERSION
    values = {"model/loss": 0.5, "coverage": -3.0, "zero": 0.0, "é": float("inf")}
    assert framed(event(1700000001.5, 300, values=values)).hex() == STEP


def test_what_is_written_is_read_at_once(tmp_path):
    with Scalars(tmp_path / "new" / "folder") as scalars:
        assert scalars.path.parent == tmp_path / "new" / "folder"
        assert scalars.path.name.startswith("events.out.tfevents.")
        ((begun, step, version),) = map(told, records(scalars.path))
        assert (step, version) == (0, b"brain.Event:2")
        assert begun > 1.7e9
        for k in range(5):
            scalars.write(k * 100, {"a": k / 4, "b/c": -1.0 - k}, time=10.0 + k)
            assert told([*records(scalars.path)][-1]) == (10.0 + k, k * 100, {"a": k / 4, "b/c": -1.0 - k})
        scalars.write(7, {})
        last = told([*records(scalars.path)][-1])
        assert last[0] >= begun
        assert last[1:] == (7, {})
    assert len([*records(scalars.path)]) == 7


@pytest.mark.parametrize("step", [0, 1, 127, 128, 300, 2**31, 2**63 - 1, -1])
def test_steps_of_every_length(step, tmp_path):
    with Scalars(tmp_path) as scalars:
        scalars.write(step, {"a": 1.0}, time=0.0)
    assert told([*records(scalars.path)][-1]) == (0.0, step, {"a": 1.0})


def test_numbers_that_are_none_are_kept(tmp_path):
    with Scalars(tmp_path) as scalars:
        scalars.write(1, {"nan": math.nan, "inf": math.inf, "huge": -1e300, "tiny": 1e-300, "long" * 100: 0.1})
    values = told([*records(scalars.path)][-1])[2]
    assert math.isnan(values.pop("nan"))
    assert values == {"inf": math.inf, "huge": -math.inf, "tiny": 0.0, "long" * 100: pytest.approx(0.1, rel=1e-7)}


def test_every_writer_has_a_file_of_its_own(tmp_path):
    for k in range(3):
        with Scalars(tmp_path) as scalars:
            scalars.write(k, {"a": float(k)}, time=1.0)
    paths = sorted(tmp_path.iterdir())
    assert [told([*records(path)][-1])[1] for path in paths] == [0, 1, 2]


def test_a_folder_that_cannot_be_is_refused(tmp_path):
    (tmp_path / "file").touch()
    with pytest.raises(InputError, match=r"cannot be written .*: choose another folder"):
        Scalars(tmp_path / "file")


def test_a_full_disk_is_told_in_one_line(tmp_path, monkeypatch):
    def full(data):
        raise OSError(28, "No space left on device")

    with Scalars(tmp_path) as scalars:
        for write, message in ((full, r"\(No space left on device\): make"), (lambda data: 3, "in full: make")):
            with monkeypatch.context() as patched:
                patched.setattr(scalars, "_file", SimpleNamespace(write=write))
                with pytest.raises(InputError, match=f"cannot be written {message} room on the disk"):
                    scalars.write(0, {"a": 1.0})
