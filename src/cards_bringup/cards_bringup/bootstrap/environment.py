"""The virtual environment of a checkout: made once, checked on every run, repaired when needed.

The stamp in the environment says what was installed. It is written as ``installing`` before
anything changes and as ``complete`` at the end, so a run that was cut short is recognised. A lock
keeps two runs from installing at once; the installers inherit it, so it holds while any of them
lives, even if this process was killed.
"""

from __future__ import annotations

import fcntl
import hashlib
import importlib.util
import json
import os
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from cards_bringup.bootstrap import ros
from cards_bringup.bootstrap.install import install
from cards_bringup.bootstrap.process import interrupts_wait
from cards_bringup.bootstrap.reporting import Progress, SetupError

FOLDER_VARIABLE = "CARDS_VENV"
"""Environment variable: where the environment goes instead of ``.venv`` in the checkout."""

VENV_OPTIONS: tuple[str, ...] = ()
"""Further options of ``python -m venv``; tests that install nothing go without pip."""

STAMP = "cards-stamp.json"
PATH_FILE = "cards_workspace.pth"
SPACE_NEEDED = {"runtime": 1.3e9, "ros": 0.3e9, "cad": 0.6e9, "docs": 0.2e9, "test": 1.2e9}
"""Free disk space that installing a set takes, with the downloads, [bytes]."""


class Environment:
    """The environment of a checkout.

    Args:
        checkout: Top folder of the repository.
        ros_kind: Which ROS it works with, as `ros.in_shell` returns.

    Attributes:
        path: Its folder.
    """

    def __init__(self, checkout: Path, ros_kind: str) -> None:
        self.checkout = checkout.resolve()
        self.ros_kind = ros_kind
        folder = os.environ.get(FOLDER_VARIABLE)
        self.path = Path(folder).expanduser().absolute() if folder else self.checkout / ".venv"

    @property
    def python(self) -> Path:
        """The interpreter in it."""
        return self.path / "bin" / "python"

    def sets(self, *, cad: bool = False, docs: bool = False, test: bool = False) -> list[str]:
        """Return the names of the requirement files to install.

        Args:
            cad: With what reading CAD files needs.
            docs: With what building the documentation needs.
            test: With what testing needs; tests build the documentation and read CAD files.
        """
        names = ["runtime"]
        if self.ros_kind == ros.WHEELS:
            names.append("ros")
        if cad or test:
            names.append("cad")
        if docs or test:
            names.append("docs")
        if test:
            names.append("test")
        return names

    def is_ready(self, sets: Sequence[str]) -> bool:
        """Return True if these sets are installed as required now.

        Raises:
            SetupError: It was made for another ROS than this shell has.
        """
        stamp = self._stamp()
        if stamp is None or stamp.get("state") != "complete" or not self.python.exists():
            return False
        ros.check_same(str(stamp.get("ros")), self.ros_kind, self.path)
        if stamp.get("path") != str(self.path) or self._missing(stamp, sets):
            return False
        return self._workspace_text() == self._read(self._workspace_file())

    def ensure(self, sets: Sequence[str]) -> bool:
        """Create or repair the environment; return True if anything had to be done.

        Raises:
            SetupError: The environment cannot be made; the message says what to do.
        """
        if self.is_ready(sets):
            return False
        self._check_place()
        started = time.monotonic()
        with self._lock():
            if self.is_ready(sets):  # somebody else did it while we waited
                return False
            if self._is_foreign():
                raise SetupError(
                    f"{self.path} exists and was not made by ./cards; move it away, or let "
                    f"{FOLDER_VARIABLE} name another folder for ours"
                )
            self._install(sets)
        seconds = time.monotonic() - started
        print(f"cards: environment ready after {seconds:.0f} s ({self.path})", file=sys.stderr)
        return True

    def remove(self) -> None:
        """Delete the environment if ./cards made it.

        Raises:
            SetupError: Something else is in its place.
        """
        self._check_place()
        if not self.path.exists():
            return
        if self._is_foreign():
            raise SetupError(f"{self.path} was not made by ./cards; remove it yourself")
        with self._lock():
            self._clear()

    def become(self, module: str, arguments: Sequence[str]) -> None:
        """Replace this process by a module run in the environment."""
        env = ros.process_environment(self.ros_kind, os.environ)
        if env.get("PYTHONPATH"):
            # a sourced workspace may hold installed copies of our packages; the sources win
            env["PYTHONPATH"] = os.pathsep.join([*self._packages(), env["PYTHONPATH"]])
        python = str(self.python)
        sys.stdout.flush()
        with interrupts_wait():
            # -P: a file in the current folder must not stand in for a package
            os.execve(python, [python, "-P", "-m", module, *arguments], env)

    # making it ------------------------------------------------------------------------------

    def _install(self, sets: Sequence[str]) -> None:
        stamp = self._stamp() or {}
        whole = stamp.get("state") == "complete" and self.python.exists()
        fresh = not whole or stamp.get("path") != str(self.path)
        self._check_space(sets if fresh else self._missing(stamp, sets))
        if fresh:
            python = getattr(sys, "_base_executable", None) or sys.executable
            _check_venv_module()
            ros.check_source(self.ros_kind, os.environ, python)
            if stamp:
                print("cards: environment incomplete; rebuilding", file=sys.stderr)
                self._clear()
            stamp = self._create(python)
        missing = self._missing(stamp, sets)
        self._write_stamp({**stamp, "state": "installing"})
        if missing:
            files = [self._file(name) for name in missing]
            install(self.python, files, self._site_packages(), self.path / "install.log")
        self._workspace_file().write_text(self._workspace_text())
        hashes = {**stamp.get("sets", {}), **{name: self._hash(name) for name in missing}}
        self._write_stamp({**stamp, "state": "complete", "sets": hashes})

    def _create(self, python: str) -> dict[str, Any]:
        if self.ros_kind == ros.NONE:
            print(
                "cards: there are no ROS wheels for this kind of machine; commands that need ROS "
                "will say so (--no-ros works)",
                file=sys.stderr,
            )
        try:
            self.path.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise SetupError(
                f"cannot make {self.path} ({error.strerror}); let {FOLDER_VARIABLE} name a folder "
                "that you may write"
            ) from error
        stamp = {"state": "installing", "path": str(self.path), "ros": self.ros_kind, "sets": {}}
        self._write_stamp(stamp)
        command = [python, "-m", "venv", "--prompt", "cards", *VENV_OPTIONS]
        if self.ros_kind.startswith(ros.SOURCED):
            command.append("--system-site-packages")
        with Progress("making a virtual environment") as progress:
            made = subprocess.Popen(
                [*command, str(self.path)],
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                text=True,
            )
            while made.poll() is None:
                progress.update()
                time.sleep(0.05)
        if made.returncode != 0:
            output = made.stdout.read() if made.stdout else ""
            reason = (output.strip().splitlines() or ["no message"])[-1]
            raise SetupError(f"{' '.join(command)} failed: {reason}")
        return stamp

    def _check_space(self, sets: Sequence[str]) -> None:
        needed = sum(SPACE_NEEDED[name] for name in sets)
        folder = self.path
        while not folder.exists():
            folder = folder.parent
        free = shutil.disk_usage(folder).free
        if free < needed:
            raise SetupError(
                f"{folder} has {free / 1e9:.1f} GB free and {needed / 1e9:.1f} GB are needed; "
                f"make room, or let {FOLDER_VARIABLE} name a folder on another disk"
            )

    @contextmanager
    def _lock(self) -> Iterator[None]:
        file = self.path.with_name(self.path.name + ".lock")
        try:
            file.parent.mkdir(parents=True, exist_ok=True)
            # who may read it may lock it
            descriptor = os.open(file, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW, 0o660)
        except OSError as error:
            raise SetupError(
                f"cannot write in {file.parent} ({error.strerror}); let {FOLDER_VARIABLE} name a "
                "folder that you may write"
            ) from error
        # installers inherit it: the lock must outlive us if they do
        os.set_inheritable(descriptor, True)
        try:
            _wait_for_lock(descriptor)
            yield
        finally:
            os.close(descriptor)

    def _clear(self) -> None:
        """Delete the environment, the stamp last: it marks what an interruption leaves."""
        self._write_stamp({"state": "removing"})
        for item in self.path.iterdir():
            if item.is_dir() and not item.is_symlink():
                shutil.rmtree(item)
            elif item.name != STAMP:
                item.unlink()
        (self.path / STAMP).unlink()
        self.path.rmdir()

    # what is there --------------------------------------------------------------------------

    def _file(self, name: str) -> Path:
        return self.checkout / "requirements" / f"{name}.txt"

    def _hash(self, name: str) -> str:
        return hashlib.sha256(self._file(name).read_bytes()).hexdigest()

    def _is_foreign(self) -> bool:
        """Return True if the folder holds files that ``./cards`` did not create."""
        if self._stamp() is not None:
            return False
        own = f"{STAMP}.new"  # what a run that was killed at once leaves
        return self.path.exists() and any(item.name != own for item in self.path.iterdir())

    def _check_place(self) -> None:
        """Refuse links: an environment works in one place, and may be another checkout's."""
        if self.path.is_symlink():
            raise SetupError(
                f"{self.path} is a link; remove it, and let {FOLDER_VARIABLE} name the folder "
                f"itself: {FOLDER_VARIABLE}={self.path.resolve()}"
            )

    def _missing(self, stamp: Mapping[str, Any], sets: Sequence[str]) -> list[str]:
        have = stamp.get("sets", {})
        return [name for name in sets if have.get(name) != self._hash(name)]

    def _stamp(self) -> dict[str, Any] | None:
        text = self._read(self.path / STAMP)
        if text is None:
            return None
        try:
            stamp = json.loads(text)
        except json.JSONDecodeError:
            stamp = None
        return stamp if isinstance(stamp, dict) else {"state": "damaged"}

    def _write_stamp(self, stamp: Mapping[str, Any]) -> None:
        temporary = self.path / f"{STAMP}.new"
        temporary.write_text(json.dumps(stamp, indent=2) + "\n")
        temporary.replace(self.path / STAMP)

    def _site_packages(self) -> Path:
        for folder in sorted((self.path / "lib").glob("python3*/site-packages")):
            return folder
        raise SetupError(f"{self.path} has no site-packages; remove it and run ./cards again")

    def _packages(self) -> list[str]:
        return [str(file.parent) for file in sorted(self.checkout.glob("src/*/setup.py"))]

    def _workspace_file(self) -> Path:
        return self._site_packages() / PATH_FILE

    def _workspace_text(self) -> str:
        return "".join(f"{folder}\n" for folder in self._packages())

    @staticmethod
    def _read(file: Path) -> str | None:
        try:
            return file.read_text()
        except (FileNotFoundError, NotADirectoryError):
            return None


def _check_venv_module() -> None:
    try:
        complete = importlib.util.find_spec("venv") and importlib.util.find_spec("ensurepip")
    except ValueError:
        complete = None
    if not complete:
        version = f"{sys.version_info.major}.{sys.version_info.minor}"
        raise SetupError(
            "this Python cannot make virtual environments (module venv or ensurepip is missing); "
            f"on Debian and Ubuntu: sudo apt install python{version}-venv"
        )


def _wait_for_lock(descriptor: int) -> None:
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        return
    except BlockingIOError:
        pass
    with Progress("waiting for another ./cards that is installing") as progress:
        while True:
            try:
                fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
                return
            except BlockingIOError:
                progress.update()
                time.sleep(0.2)
