"""The reader of all that comes from outside: kind, size, depth and memory are bounded."""

import json
import os
import resource
import zipfile

import numpy as np
import pytest

from cards_core.checks import free_memory
from cards_core.errors import DescriptionError
from cards_core.foreign_files import (
    MOST_DEPTH,
    parse_json,
    read_arrays,
    read_bytes,
    read_json,
    read_text,
)


@pytest.fixture(params=["zero", "pipe", "folder", "nowhere", "circle"])
def special(request, tmp_path):
    path = tmp_path / "data"
    match request.param:
        case "zero":
            path.symlink_to("/dev/zero")
        case "pipe":
            os.mkfifo(path)
        case "folder":
            path.mkdir()
        case "nowhere":
            path.symlink_to(tmp_path / "nothing")
        case "circle":
            path.symlink_to(path)
    return path


@pytest.mark.parametrize("read", [read_bytes, read_text, read_json, read_arrays])
def test_only_regular_files_are_read(read, special):
    with pytest.raises(DescriptionError, match=r"data: .*(expected: .*)"):
        read(special)


def test_a_file_is_no_larger_than_its_reader_takes(tmp_path):
    path = tmp_path / "data"
    path.write_bytes(b"12345")
    assert read_bytes(path, most=5) == b"12345"
    with pytest.raises(DescriptionError, match=r"data: is too large .expected: at most 4 bytes"):
        read_bytes(path, most=4)
    os.truncate(path, 10**12)  # takes no room on the disk
    with pytest.raises(DescriptionError, match=r"is too large .expected: at most 64 MB"):
        read_json(path)


def test_a_small_file_takes_little_memory(tmp_path, gigabyte):
    """However much its reader would take: room for it all is more than there is."""
    path = tmp_path / "data"
    path.write_bytes(b"12345")
    assert read_bytes(path, most=10**12) == b"12345"


def test_texts_are_utf8_with_or_without_a_mark(tmp_path):
    path = tmp_path / "data"
    path.write_bytes(b"\xef\xbb\xbfa\n\xc3\xa4")
    assert read_text(path) == "a\nä"
    path.write_bytes(b"a\nb\xff")
    with pytest.raises(DescriptionError, match="data:2: cannot be read: byte 0xff is not UTF-8"):
        read_text(path)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("{", "cannot be read: .*line 1 column 2"),
        ("[" * 100_000, "nested too deeply"),
        ("[" * 51 + "1" + "]" * 51, f"nested too deeply .*at most {MOST_DEPTH} levels"),
        ("1" + "0" * 400, "a whole number of 401 digits"),
        ("1" + "0" * 5000, "a whole number of 5001 digits"),
        (r'["\ud800"]', "surrogates not allowed"),
        (r'{"\ud800": 1}', "surrogates not allowed"),
        (b'"\xff"', "cannot be read"),
    ],
)
def test_json_that_nothing_could_work_with(text, message):
    with pytest.raises(DescriptionError, match=message):
        parse_json(text, "here")


def test_json_that_is_read():
    data = {"a": [1, 2.5, None, True, "ä", {}], "b": -(2**70), "c": 1e300}
    assert parse_json(json.dumps(data), "here") == data
    assert parse_json("[" * 50 + "1" + "]" * 50, "here")


# Arrays ------------------------------------------------------------------------------------------


def bomb(path, name, gigabytes=2, **others):
    """Write gigabytes of zeros into a few megabytes."""
    np.savez(path, **others)
    entry = zipfile.ZipInfo(f"{name}.npy")
    entry.compress_type = zipfile.ZIP_DEFLATED
    head = {"descr": "<f8", "fortran_order": False, "shape": (gigabytes * 125_000_000,)}
    with zipfile.ZipFile(path, "a") as archive, archive.open(entry, "w", force_zip64=True) as out:
        np.lib.format.write_array_header_1_0(out, head)
        for _ in range(100 * gigabytes):
            out.write(bytes(10_000_000))


@pytest.fixture
def gigabyte():
    """A gigabyte more of address space than there is in use, for this process."""
    before = resource.getrlimit(resource.RLIMIT_AS)
    with open("/proc/self/statm", encoding="ascii") as file:
        used = int(file.read().split()[0]) * os.sysconf("SC_PAGE_SIZE")
    resource.setrlimit(resource.RLIMIT_AS, (used + 1_000_000_000, before[1]))
    yield
    resource.setrlimit(resource.RLIMIT_AS, before)


def test_arrays_that_are_not_wanted_are_not_unpacked(tmp_path, gigabyte):
    path = tmp_path / "log.npz"
    bomb(path, "unused", time=np.arange(3.0))
    assert path.stat().st_size < 10_000_000
    assert free_memory() <= 1_000_000_000
    np.testing.assert_array_equal(read_arrays(path, "time".__eq__)["time"], np.arange(3.0))
    with pytest.raises(DescriptionError, match=r"log\.npz: .*2 GB of memory.*half may be used"):
        read_arrays(path)


@pytest.mark.parametrize("method", [0, 8, 12, 14])
def test_flipped_bits_of_archives_are_told(method, tmp_path):
    """Of any compression, whatever zipfile, zlib, bz2, lzma and NumPy's headers make of them."""
    rng = np.random.default_rng(method)
    path = tmp_path / "log.npz"
    with zipfile.ZipFile(path, "w", method) as archive, archive.open("q.npy", "w") as out:
        np.lib.format.write_array(out, rng.normal(size=(20, 2)))
    good = path.read_bytes()
    refused = 0
    for _ in range(400):
        data = bytearray(good)
        data[int(rng.integers(len(data)))] ^= 1 << int(rng.integers(8))
        path.write_bytes(data)
        try:
            read_arrays(path)
        except DescriptionError:
            refused += 1
    assert refused > 200


def test_what_is_no_archive_of_arrays(tmp_path):
    path = tmp_path / "log.npz"
    for content, message in (
        (b"", "cannot be read"),
        (b"text", "not a NumPy archive"),
        (b"\x93NUMPY\x01\x00v\x00", "cannot be read"),
    ):
        path.write_bytes(content)
        with pytest.raises(DescriptionError, match=message):
            read_arrays(path)
    with open(path, "wb") as out:
        np.save(out, np.zeros(3))
    with pytest.raises(DescriptionError, match="a single NumPy array"):
        read_arrays(path)
    np.savez(path, q=np.array([{}], dtype=object))
    with pytest.raises(DescriptionError, match="Python objects"):
        read_arrays(path)
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("q", "text")
    with pytest.raises(DescriptionError, match="'q' is not an array"):
        read_arrays(path)


def test_what_a_library_says_of_an_archive_is_cut_short(tmp_path):
    """What zipfile shows is the name of an entry as the file has it: thousands of bytes."""
    path = tmp_path / "log.npz"
    np.savez(path, q=np.zeros((200, 2)))
    data = bytearray(path.read_bytes())
    data[data.index(b"q.npy") - 4 : data.index(b"q.npy") - 2] = (3000).to_bytes(2, "little")
    path.write_bytes(data)
    with pytest.raises(DescriptionError, match=r"File name in directory 'q\.npy'") as error:
        read_arrays(path)
    assert len(error.value.problem) < 300
    assert "\n" not in str(error.value)
