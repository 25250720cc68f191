"""What others can write is not loaded as code; what is ours is."""

import hashlib
import os
import pwd
import subprocess
import sys

import pytest

from cards_core.codegen.cache import trusted_cache
from cards_core.codegen.library import load_library
from cards_core.permissions import check_private

TWICE = "double twice(double x) { return 2.0 * x; }\n"


@pytest.fixture
def folder(tmp_path, monkeypatch):
    folder = tmp_path / "cache"
    monkeypatch.setenv("CARDS_CACHE", str(folder))
    return folder


def test_a_new_cache_is_ours_alone(folder):
    before = os.umask(0)
    try:
        assert trusted_cache() == folder
    finally:
        os.umask(before)
    assert folder.stat().st_mode & 0o777 == 0o700


@pytest.mark.parametrize("mode", [0o700, 0o755, 0o500])
def test_folders_that_others_can_read_at_most_are_trusted(folder, mode):
    folder.mkdir()
    folder.chmod(mode)
    check_private(folder)


def test_everybody_may_write(folder):
    folder.mkdir()
    folder.chmod(0o777)
    with pytest.raises(PermissionError, match=r"not trusted: all users can write it \(chmod go-w"):
        trusted_cache()
    folder.chmod(0o1777)  # who made a file first keeps it, and others can be first
    with pytest.raises(PermissionError, match="all users can write it"):
        trusted_cache()


def test_a_group_with_others_may_write(folder, monkeypatch):
    folder.mkdir()
    folder.chmod(0o775)
    entries = [pwd.struct_passwd(("me", "x", os.geteuid(), folder.stat().st_gid, "", "", ""))]
    monkeypatch.setattr(pwd, "getpwuid", lambda number: entries[0])
    monkeypatch.setattr(pwd, "getpwall", lambda: entries)
    check_private(folder)  # a group of our own, the default of many systems
    other = pwd.struct_passwd(("you", "x", 4711, folder.stat().st_gid, "", "", ""))
    monkeypatch.setattr(pwd, "getpwall", lambda: [*entries, other])
    with pytest.raises(PermissionError, match="its group can write it"):
        trusted_cache()


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give a folder away")
def test_a_folder_of_somebody_else(folder):
    folder.mkdir()
    os.chown(folder, 65534, -1)
    with pytest.raises(PermissionError, match="it belongs to nobody, not root"):
        trusted_cache()


def test_a_folder_that_everybody_can_rename(tmp_path):
    inner = tmp_path / "open" / "mine"
    inner.mkdir(parents=True)
    inner.parent.chmod(0o777)
    with pytest.raises(PermissionError, match=r"all users can rename what .*open holds"):
        check_private(inner)
    inner.parent.chmod(0o1777)  # as /tmp is
    check_private(inner)


def test_links_are_followed(tmp_path):
    target = tmp_path / "target"
    target.mkdir()
    target.chmod(0o777)
    (tmp_path / "link").symlink_to(target)
    with pytest.raises(PermissionError, match="all users can write it"):
        check_private(tmp_path / "link")


def test_code_in_a_folder_that_others_can_write_is_not_loaded(folder):
    load_library("a number", TWICE)
    (library,) = folder.glob("*/model.so")
    # what somebody else would do: another library, with its checksum
    evil = folder.parent / "evil"
    evil.mkdir()
    (evil / "x.c").write_text("double twice(double x) { return 666.0; }\n")
    subprocess.run(["cc", "-shared", "-fPIC", "-o", "x.so", "x.c"], cwd=evil, check=True)
    library.unlink()  # this process has it in memory
    library.write_bytes((evil / "x.so").read_bytes())
    digest = hashlib.sha256(library.read_bytes()).hexdigest()
    library.with_name("model.sha256").write_text(digest)
    program = (
        "import ctypes, sys\n"
        "from cards_core.codegen.library import load_library\n"
        f"f = load_library('a number', {TWICE!r}).twice\n"
        "f.restype, f.argtypes = ctypes.c_double, [ctypes.c_double]\n"
        "print(f(21.0))\n"
    )

    def result():
        return subprocess.run(
            [sys.executable, "-c", program], capture_output=True, text=True, check=True
        )

    assert result().stdout == "666.0\n"  # the folder is ours: so is what is in it
    folder.chmod(0o777)
    done = result()
    assert done.stdout == "42.0\n"
    assert "not trusted: all users can write it" in done.stderr
