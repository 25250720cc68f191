"""Files that are whole or not there: full disks, links, devices, folders that were not there."""

import os
import resource
import secrets
import signal
import stat
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest

from cards_core.errors import CardsError
from cards_core.files import (
    PART,
    ProcessFolder,
    inside,
    is_part,
    locked,
    replacing,
    write_atomically,
    writing_together,
)


def everything(folder):
    return sorted(str(item.relative_to(folder)) for item in folder.rglob("*"))


def on_a_full_disk(script, folder):
    """Run a script in a process whose files cannot grow beyond a kilobyte."""
    return subprocess.run(
        # -B: Python takes no notice if a compiled module is cut short
        [sys.executable, "-B", "-c", textwrap.dedent(script)],
        cwd=folder,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
        preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (1024, 1024)),
    )


def test_a_file_is_written_and_nothing_else(tmp_path):
    write_atomically(tmp_path / "a.txt", "läuft")
    assert (tmp_path / "a.txt").read_bytes() == "läuft".encode()
    write_atomically(str(tmp_path / "a.txt"), b"again")
    assert (tmp_path / "a.txt").read_bytes() == b"again"
    assert everything(tmp_path) == ["a.txt"]


def test_on_a_full_disk_the_old_file_stays(tmp_path):
    (tmp_path / "old").write_text("old")
    script = """
        from cards_core.files import write_atomically
        for name in ("old", "new"):
            try:
                write_atomically(name, "x" * 5000)
            except OSError as error:
                print(error.strerror)
    """
    result = on_a_full_disk(script, tmp_path)
    assert (result.stdout, result.stderr) == ("File too large\nFile too large\n", "")
    assert everything(tmp_path) == ["old"]
    assert (tmp_path / "old").read_text() == "old"


def test_on_a_full_disk_files_of_a_set_stay_as_they_were(tmp_path):
    (tmp_path / "there").mkdir()
    (tmp_path / "there" / "small").write_text("old")
    script = """
        from cards_core.files import writing_together
        for folder in ("there", "deep/new/folder"):
            try:
                with writing_together(folder) as work:
                    (work / "small").write_text("new")
                    (work / "large").write_text("x" * 5000)
            except OSError as error:
                print(error.strerror)
    """
    result = on_a_full_disk(script, tmp_path)
    assert (result.stdout, result.stderr) == ("File too large\nFile too large\n", "")
    assert everything(tmp_path) == ["there", "there/small"]
    assert (tmp_path / "there" / "small").read_text() == "old"


def write_half_of_one(folder, error):
    with replacing(folder / "a") as temporary:
        temporary.write_text("half")
        raise error


def write_half_of_several(folder, error):
    with writing_together(folder / "b" / "c") as work:
        (work / "a").write_text("half")
        raise error


@pytest.mark.parametrize("write", [write_half_of_one, write_half_of_several])
@pytest.mark.parametrize("error", [KeyboardInterrupt, ZeroDivisionError])
def test_an_interruption_leaves_what_was_there(tmp_path, write, error):
    (tmp_path / "a").write_text("old")
    with pytest.raises(error):
        write(tmp_path, error)
    assert everything(tmp_path) == ["a"]
    assert (tmp_path / "a").read_text() == "old"


def test_folders_that_were_made_stay_if_others_use_them(tmp_path):
    def write():
        with writing_together(tmp_path / "a" / "b"):
            (tmp_path / "a" / "note").touch()
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        write()
    assert everything(tmp_path) == ["a", "a/note"]


def test_a_set_of_files_replaces_those_of_the_same_names(tmp_path):
    (tmp_path / "a").write_text("old")
    (tmp_path / "z").write_text("of the user")
    with writing_together(tmp_path) as work:
        (work / "a").write_text("new")
        (work / "b").write_text("new")
        assert (tmp_path / "a").read_text() == "old"
    assert everything(tmp_path) == ["a", "b", "z"]
    assert (tmp_path / "a").read_text() == "new"


def test_a_folder_in_the_place_of_one_file_keeps_all_of_them_away(tmp_path):
    (tmp_path / "b").mkdir()

    def write():
        with writing_together(tmp_path) as work:
            (work / "a").touch()
            (work / "b").touch()

    with pytest.raises(IsADirectoryError):
        write()
    assert everything(tmp_path) == ["b"]


def test_a_link_is_followed_and_permissions_are_kept(tmp_path):
    (tmp_path / "real").mkdir()
    file = tmp_path / "real" / "file"
    file.write_text("old")
    file.chmod(0o640)
    (tmp_path / "link").symlink_to(file)
    write_atomically(tmp_path / "link", "new")
    assert (tmp_path / "link").is_symlink()
    assert file.read_text() == "new"
    assert stat.S_IMODE(file.stat().st_mode) == 0o640
    assert everything(tmp_path) == ["link", "real", "real/file"]


def test_a_new_file_has_the_permissions_of_any_new_file(tmp_path):
    write_atomically(tmp_path / "a", "")
    (tmp_path / "b").touch()
    assert (tmp_path / "a").stat().st_mode == (tmp_path / "b").stat().st_mode


def test_a_device_is_written_to_and_not_replaced():
    write_atomically("/dev/null", "anything")
    assert stat.S_ISCHR(Path("/dev/null").stat().st_mode)


def test_a_pipe_gets_the_text():
    script = "from cards_core.files import write_atomically; write_atomically('/dev/stdout', 'x')"
    result = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, timeout=60, check=True
    )
    assert result.stdout == "x"


@pytest.mark.parametrize(
    ("place", "error"),
    [("missing/a", FileNotFoundError), ("folder", IsADirectoryError), ("file/a", OSError)],
)
def test_places_that_cannot_be_written(tmp_path, place, error):
    (tmp_path / "folder").mkdir()
    (tmp_path / "file").touch()
    with pytest.raises(error):
        write_atomically(tmp_path / place, "x")
    assert everything(tmp_path) == ["file", "folder"]


def test_what_a_killed_process_leaves_is_known(tmp_path):
    with replacing(tmp_path / "result.npz") as temporary:
        temporary.touch()
        assert is_part(temporary.name)
    assert not is_part("result.npz")
    assert not is_part("spare.part")


@pytest.mark.parametrize("name", ["a", "a b", "run_2.npz", "größe", "x" * 255])
def test_inside_a_folder(tmp_path, name):
    assert inside(tmp_path, name) == tmp_path / name


@pytest.mark.parametrize(
    "name",
    ["", ".", "..", "../a", "a/b", "/etc/passwd", "a\\b", "a\0b", "a\nb", ".git", "x" * 256],
)
def test_outside_of_a_folder(tmp_path, name):
    with pytest.raises(CardsError, match="is no name in"):
        inside(tmp_path, name)


def test_a_file_that_may_only_be_read_stays(tmp_path, monkeypatch):
    file = tmp_path / "file"
    file.write_text("old")
    file.chmod(0o444)
    if os.geteuid() == 0:  # who may write everything: as it is for all others
        monkeypatch.setattr(os, "access", lambda path, _: bool(os.stat(path).st_mode & 0o200))
    with pytest.raises(PermissionError, match="file"):
        write_atomically(file, "new")
    assert file.read_text() == "old"
    assert everything(tmp_path) == ["file"]


def test_nobody_reads_a_new_version_who_may_not_read_the_old_one(tmp_path):
    file = tmp_path / "file"
    file.write_text("old")
    file.chmod(0o600)
    with replacing(file) as temporary:
        temporary.write_text("new")
        assert stat.S_IMODE(temporary.stat().st_mode) == 0o600


def test_a_link_in_the_place_of_an_unfinished_file_is_not_followed(tmp_path, monkeypatch):
    with replacing(tmp_path / "a") as first:
        first.touch()
    with replacing(tmp_path / "a") as second:
        second.touch()
    assert first.name != second.name
    monkeypatch.setattr(secrets, "token_hex", lambda _: "guessed")
    (tmp_path / f".a.guessed{PART}").symlink_to(tmp_path / "elsewhere")
    with pytest.raises(FileExistsError):
        write_atomically(tmp_path / "a", "new")
    assert not (tmp_path / "elsewhere").exists()


def test_others_can_neither_hold_a_lock_nor_lead_it_elsewhere(tmp_path):
    before = os.umask(0)
    try:
        with locked(tmp_path / "lock", "in use"):
            assert not (tmp_path / "lock").stat().st_mode & 0o007
    finally:
        os.umask(before)
    (tmp_path / "lock").symlink_to(tmp_path / "made")
    with pytest.raises(OSError, match="symbolic links"), locked(tmp_path / "lock", "in use"):
        pass
    assert not (tmp_path / "made").exists()


HOLDER = """
import sys
from cards_core.files import ProcessFolder
folder = ProcessFolder("trial", sys.argv[1])
print(folder.path, flush=True)
sys.stdin.readline()
"""


def test_folders_of_killed_processes_are_removed_and_no_others(tmp_path):
    line = [sys.executable, "-c", HOLDER, str(tmp_path)]
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "text": True}
    holders = [subprocess.Popen(line, **pipes) for _ in range(2)]
    left, kept = (Path(holder.stdout.readline().strip()) for holder in holders)
    try:
        (left / "socket").touch()
        holders[0].send_signal(signal.SIGKILL)
        holders[0].wait(30.0)
        others = [tmp_path / "cards-other-1-abc", tmp_path / "cards-trial-abc"]
        if os.geteuid() == 0:
            others.append(tmp_path / "cards-trial-1-of_another_user")
        for other in others:
            other.mkdir()
        (tmp_path / "elsewhere").mkdir()
        (tmp_path / "cards-trial-1-link").symlink_to(tmp_path / "elsewhere")
        if os.geteuid() == 0:
            os.chown(others[-1], 65534, -1)
        assert left.exists()
        own = ProcessFolder("trial", str(tmp_path))
        assert str(os.getpid()) in own.path.name
        assert stat.S_IMODE(own.path.stat().st_mode) == 0o700
        again = ProcessFolder("trial", str(tmp_path))
        assert not left.exists()
        assert all(path.is_dir() for path in (kept, own.path, again.path, *others))
        assert (tmp_path / "elsewhere").is_dir()
        for folder in (own, again, own):
            folder.close()
        assert not own.path.exists()
    finally:
        for holder in holders:
            holder.communicate(timeout=30.0)
