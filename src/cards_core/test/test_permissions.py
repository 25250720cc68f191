"""What others can write is not loaded as code; what is ours is."""

import hashlib
import os
import pwd
import subprocess
import sys

import pytest

from cards_core.codegen.cache import trusted_cache
from cards_core.codegen.library import load_library
from cards_core.errors import CardsError
from cards_core.files import claim
from cards_core.permissions import check_private, private_folder

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


def test_a_folder_above_that_a_group_can_rename(tmp_path, monkeypatch):
    inner = tmp_path / "group" / "mine" / "cache"
    inner.mkdir(parents=True)
    shared = inner.parents[1]
    shared.chmod(0o770)
    monkeypatch.setattr("cards_core.permissions._own_group", lambda number: False)
    with pytest.raises(PermissionError, match=r"its group can rename what .*group holds"):
        check_private(inner)
    shared.chmod(0o1770)
    check_private(inner)
    monkeypatch.setattr("cards_core.permissions._own_group", lambda number: True)
    shared.chmod(0o770)
    check_private(inner)


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give a folder away")
@pytest.mark.parametrize("above", ["his", "his/mine"])
def test_a_folder_above_of_somebody_else(tmp_path, above):
    inner = tmp_path / "his" / "mine" / "cache"
    inner.mkdir(parents=True)
    os.chown(tmp_path / above, 65534, -1)
    with pytest.raises(PermissionError, match=rf"{above}, which leads to it, belongs to nobody"):
        check_private(inner)


def test_links_lead_through_folders_that_nobody_else_can_write(tmp_path):
    (tmp_path / "cache").mkdir()
    places = [tmp_path / "open", tmp_path / "fine"]
    for place in places:
        place.mkdir()
    # a link of ours to a link that all users can replace; ends well, and another way the next time
    (places[0] / "second").symlink_to("../cache")
    (places[1] / "first").symlink_to(places[0] / "second")
    check_private(places[1] / "first")
    places[0].chmod(0o777)
    with pytest.raises(PermissionError, match=r"all users can rename what .*open holds"):
        check_private(places[1] / "first")


def test_links_that_go_round_or_nowhere(tmp_path):
    (tmp_path / "a").symlink_to("b")
    (tmp_path / "b").symlink_to("a")
    for make in (False, True):
        with pytest.raises(OSError, match="symbolic links"):
            check_private(tmp_path / "a", make=make)
    (tmp_path / "nowhere").symlink_to("missing")
    with pytest.raises(FileNotFoundError):
        check_private(tmp_path / "nowhere", make=True)


def test_what_is_missing_is_made_for_us_alone(tmp_path):
    with pytest.raises(FileNotFoundError):
        check_private(tmp_path / "a")
    before = os.umask(0)
    try:
        check_private(tmp_path / "a" / "b", make=True)
    finally:
        os.umask(before)
    assert [(tmp_path / name).stat().st_mode & 0o777 for name in ("a", "a/b")] == [0o700] * 2
    # nothing is made where others could take it away again
    (tmp_path / "a").chmod(0o777)
    with pytest.raises(PermissionError, match="all users can rename"):
        check_private(tmp_path / "a" / "c", make=True)
    assert not (tmp_path / "a" / "c").exists()


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


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give a folder away")
def test_what_others_left_in_the_cache_is_not_loaded(folder):
    trusted_cache()
    (folder / "firmware").mkdir()
    for name in ("key", "firmware/key"):
        (folder / name).mkdir()
        assert trusted_cache(name) == folder / name
        os.chown(folder / name, 65534, -1)
        with pytest.raises(PermissionError, match="belongs to nobody"):
            trusted_cache(name)
    os.chown(folder / "firmware", 65534, -1)
    with pytest.raises(PermissionError, match="belongs to nobody"):
        trusted_cache("firmware/new")
    assert trusted_cache("new") == folder / "new"


# Folders for locks and links ---------------------------------------------------------------------


@pytest.fixture
def places(tmp_path, monkeypatch):
    """Return the folders of a session, of temporary files and of the user."""
    out = [tmp_path / name for name in ("session", "tmp", "home")]
    for folder in out:
        folder.mkdir(mode=0o700)
    out[1].chmod(0o1777)
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(out[0]))
    monkeypatch.setenv("TMPDIR", str(out[1]))
    monkeypatch.setenv("HOME", str(out[2]))
    return out


def expected(places):
    session, temporary, home = places
    return [session / "cards", temporary / f"cards-{os.geteuid()}", home / ".cache/cards/run"]


def test_the_folder_of_the_session_then_that_of_temporary_files(places, monkeypatch):
    before = os.umask(0)
    try:
        assert private_folder() == private_folder() == expected(places)[0]
        monkeypatch.setenv("XDG_RUNTIME_DIR", str(places[0] / "missing"))
        assert private_folder() == expected(places)[1]
        monkeypatch.delenv("XDG_RUNTIME_DIR")
        assert private_folder() == expected(places)[1]
    finally:
        os.umask(before)
    assert not (places[0] / "missing").exists()
    for folder in expected(places)[:2]:
        assert folder.stat().st_mode & 0o777 == 0o700


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give a folder away")
def test_the_session_of_somebody_else_is_left_alone(places):
    os.chown(places[0], 65534, -1)
    assert private_folder() == expected(places)[1]
    assert not list(places[0].iterdir())
    os.chown(expected(places)[1], 65534, -1)  # who was first there keeps nobody from running
    assert private_folder() == expected(places)[2]


@pytest.mark.parametrize("number", [0, 1])
def test_folders_that_others_can_enter_or_lead_elsewhere_are_not_used(places, number):
    taken, after = expected(places)[number], expected(places)[number + 1]
    taken.mkdir()
    if number == 1:
        (places[0] / "cards").touch()
    for mode in (0o701, 0o710, 0o704, 0o770):
        taken.chmod(mode)
        assert private_folder() == after
    taken.rmdir()
    (places[2] / "elsewhere").mkdir(mode=0o700)
    taken.symlink_to(places[2] / "elsewhere")
    assert private_folder() == after


def test_a_user_without_any_such_folder_is_told(places, tmp_path, monkeypatch):
    for folder in places:
        folder.chmod(0o777)
    with pytest.raises(CardsError, match=r"no folder for locks and links: .*session holds.*tmp hol"
                       r".*home holds.*expected: XDG_RUNTIME_DIR"):  # fmt: skip
        private_folder()
    for name in ("XDG_RUNTIME_DIR", "TMPDIR", "HOME"):
        monkeypatch.setenv(name, str(tmp_path / "missing"))
    with pytest.raises(CardsError, match="no folder for locks and links"):
        private_folder()
    assert not (tmp_path / "missing").exists()


def test_a_folder_of_root_is_no_folder_of_the_user(places, monkeypatch):
    private_folder()
    monkeypatch.setattr(os, "geteuid", lambda: 4711)
    with pytest.raises(CardsError, match="folder of 4711 with mode 0700"):
        private_folder()


def test_files_there_are_for_this_user_and_no_links(places):
    before = os.umask(0)
    try:
        first = claim("lock")
    finally:
        os.umask(before)
    assert (private_folder() / "lock").stat().st_mode & 0o777 == 0o600
    assert claim("lock") is None
    os.close(first)
    (private_folder() / "link").symlink_to(places[2] / "made")
    with pytest.raises(OSError, match="symbolic links"):
        claim("link")
    assert not (places[2] / "made").exists()
