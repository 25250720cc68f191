"""Checks of the machine; each yields OK, WARN or FAIL and says what to do.

Only the standard library is imported; everything else is imported in a separate process, so that a
broken installation does not stop its own diagnosis.
"""

from __future__ import annotations

import ctypes
import glob
import grp
import importlib.metadata
import os
import shutil
import socket
import sys
import tempfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from importlib.util import find_spec
from pathlib import Path
from typing import TypeAlias

from cards_bringup.bootstrap import Environment, SetupError, ros
from cards_bringup.bootstrap.install import pinned
from cards_bringup.findings import Finding, Status, run, run_python, shadowing
from cards_bringup.gazebo import installation

Check: TypeAlias = Callable[[], Iterator[Finding]]

DISTRIBUTION = "cards-robotics"
"""What ``pip install`` calls all our packages together."""


@dataclass(frozen=True)
class Installation:
    """How CARDS came to this machine, which decides what mends it.

    Attributes:
        checkout: Top folder of the repository, or None if the code is installed.
        by_pip: Whether pip installed it; else it comes from a checkout or a colcon workspace.
    """

    checkout: Path | None = None
    by_pip: bool = False

    @classmethod
    def of(cls, checkout: Path | None) -> Installation:
        """Return the present one.

        Args:
            checkout: Top folder of the repository, or None if the code is installed.
        """
        beside = Path(__file__).resolve().parents[1]
        record = f"{DISTRIBUTION.replace('-', '_')}-*.dist-info"
        return cls(checkout, checkout is None and any(beside.glob(record)))

    def install(self, extra: str = "", *, again: bool = False) -> str:
        """Return the command that installs missing packages.

        Args:
            extra: The optional part of the distribution that has them, if any.
            again: They are there and broken.
        """
        if self.checkout is not None:
            return "./cards setup --recreate" if again else "./cards setup"
        if not self.by_pip:
            return "install them for the Python of ROS 2; then build the workspace"
        name = f"'{DISTRIBUTION}[{extra}]'" if extra else DISTRIBUTION
        return f"pip install --force-reinstall {name}" if again else f"pip install {name}"


def examine(checkout: Path | None) -> Iterator[Finding]:
    """Yield what each check finds, as it finds it.

    Args:
        checkout: Top folder of the repository, or None if the code is installed.
    """
    here = Installation.of(checkout)
    yield from check_python()
    environment = list(check_environment(here))
    yield from environment
    inside: tuple[Check, ...] = (
        partial(check_packages, here),
        partial(check_dynamics, here),
        partial(check_compiler, here),
        partial(check_cache, here),
        partial(check_ros, here),
    )
    if any(finding.status == "FAIL" for finding in environment):
        inside = ()  # they would all say the same
    others: tuple[Check, ...] = (
        check_launch,
        check_gazebo,
        check_ports,
        check_serial_ports,
        check_cross_compiler,
        check_emulator,
        check_size,
    )
    for check in (*inside, *others):
        yield from check()


def check_gazebo() -> Iterator[Finding]:
    """Gazebo with all that the muscle plugin needs; optional as a whole."""
    yield from installation.examine()[1]


# Python, the environment with its packages, ROS 2 ------------------------------------------------

MODULES = {
    "numpy": "numpy",
    "scipy": "scipy.linalg",
    "casadi": "casadi",
    "daqp": "daqp",
    "osqp": "osqp",
    "mujoco": "mujoco",
    "viser": "viser",
    "matplotlib": "matplotlib",
    "mcap": "mcap",
    "cma": "cma",
    "pyarrow": "pyarrow",
    "distributed": "distributed",
    "pyserial": "serial",
    "pyyaml": "yaml",
}
"""Distribution to the module that is imported to try it."""

OPTIONAL = ("osqp", "viser", "matplotlib", "mcap", "cma", "pyarrow", "distributed", "pyserial")
"""Packages that only some commands need."""

EXTRAS = {
    "viser": "view",
    "cma": "learning",
    "pyarrow": "analysis",
    "distributed": "analysis",
    "pyserial": "hardware",
}
"""Optional part of our distribution that has them."""


def check_python() -> Iterator[Finding]:
    """Version of Python; ./cards itself refuses one that is too old."""
    version = ".".join(map(str, sys.version_info[:3]))
    yield Finding("Python", "OK", f"{version} ({sys.executable})")


def check_environment(here: Installation) -> Iterator[Finding]:
    """The environment that ``./cards`` makes."""
    if here.checkout is None:
        by = "pip" if here.by_pip else "colcon"
        yield Finding("environment", "OK", f"installed by {by}; ./cards is not used")
        return
    try:
        environment = Environment(here.checkout, ros.in_shell(os.environ))
        ready = environment.is_ready(environment.sets())
    except SetupError as error:
        yield Finding("environment", "FAIL", "does not fit this shell", str(error))
        return
    if not ready:
        where = "incomplete" if environment.path.exists() else "not made yet"
        yield Finding("environment", "FAIL", f"{environment.path}: {where}", "./cards setup")
        return
    test = "with" if environment.is_ready(environment.sets(test=True)) else "without"
    yield Finding("environment", "OK", f"{environment.path}, {test} the test packages")


def check_packages(here: Installation) -> Iterator[Finding]:
    """Version of each key package, and whether it can be imported."""
    checkout = here.checkout
    wanted = pinned(checkout / "requirements" / "runtime.txt") if checkout else {}
    for name, module in MODULES.items():
        bad: Status = "WARN" if name in OPTIONAL else "FAIL"
        try:
            version = importlib.metadata.version(name)
        except importlib.metadata.PackageNotFoundError:
            yield Finding(name, bad, "not installed", here.install(EXTRAS.get(name, "")))
            continue
        answer = run_python(f"import {module}")
        if not answer.ok:
            yield Finding(
                name,
                bad,
                f"{version} cannot be imported: {answer.text}",
                _again(here, module.split(".")[0], extra=EXTRAS.get(name, "")),
            )
        elif name in wanted and wanted[name] != version:
            yield Finding(name, "WARN", f"{version}, tested with {wanted[name]}", here.install())
        else:
            yield Finding(name, "OK", version)


def check_dynamics(here: Installation, robot: str = "planar_2r") -> Iterator[Finding]:
    """The whole chain below ROS: read a robot, simulate a step."""
    script = (
        "from cards_core.formats import load\n"
        "from cards_sim.simulator import Simulator\n"
        f"robot = load({robot!r})\n"
        "simulator = Simulator(robot)\n"
        "simulator.step([m.tension_min for m in robot.muscles])\n"
        "print(f'{robot.name}: one step to t = {simulator.time:g} s')\n"
    )
    answer = run_python(script, timeout=60)
    if answer.ok:
        yield Finding("MuJoCo simulator", "OK", answer.text)
    else:
        yield Finding("MuJoCo simulator", "FAIL", answer.text, _again(here, "casadi", "mujoco"))


def _again(here: Installation, *packages: str, extra: str = "") -> str:
    """Return what mends packages that are there and broken."""
    for spec in map(find_spec, packages):
        if spec and spec.origin and (others := shadowing(Path(spec.origin).parent)):
            return f"unset LD_LIBRARY_PATH: it puts another program's {others[0]} in their place"
    return here.install(extra, again=True)


LOOPBACK = """
import os, time
import rclpy
from rclpy.utilities import get_rmw_implementation_identifier
from std_msgs.msg import Int32
rclpy.init()
node = rclpy.create_node('cards_doctor')
got = []
node.create_subscription(Int32, 'cards_doctor', lambda m: got.append(m.data), 1)
publisher = node.create_publisher(Int32, 'cards_doctor', 1)
end = time.monotonic() + 10
while not got and time.monotonic() < end:
    publisher.publish(Int32(data=7))
    rclpy.spin_once(node, timeout_sec=0.1)
assert got and got[0] == 7, 'a message published here did not arrive here'
print(get_rmw_implementation_identifier(), os.path.dirname(rclpy.__file__), sep='\\n')
node.destroy_node()
rclpy.try_shutdown()
"""
"""Publishes to itself until a message comes back."""


def check_ros(here: Installation) -> Iterator[Finding]:
    """Distribution, RMW, and a message there and back; optional for who installed by pip."""
    if here.by_pip and find_spec("rclpy") is None:
        yield Finding(
            "ROS 2", "WARN", "not installed; only nodes and topics need it", here.install("ros")
        )
        return
    try:
        kind = ros.in_shell(os.environ)
    except SetupError as error:
        yield Finding("ROS 2", "FAIL", "the shell mixes", str(error))
        return
    env = {
        **os.environ,
        "ROS_DOMAIN_ID": str(1 + os.getpid() % 101),
        "ROS_AUTOMATIC_DISCOVERY_RANGE": "LOCALHOST",
    }
    answer = run_python(LOOPBACK, env=env)
    name = "jazzy wheels" if kind == ros.WHEELS else kind.removeprefix(ros.SOURCED)
    if not answer.ok:
        fix = f"{here.install('ros')}; meanwhile --no-ros works"
        if "did not arrive" in answer.text:
            fix = "allow UDP on the loopback interface (firewall, container network)"
        elif kind.startswith(ros.SOURCED):
            fix = f"source /opt/ros/{name}/setup.bash in a new shell, then {here.install('ros')}"
        yield Finding("ROS 2", "FAIL", f"{name}: {answer.text}", fix)
        return
    rmw, folder = answer.text.splitlines()[-2:]
    yield Finding("ROS 2", "OK", f"{name}, {rmw}, message came back ({folder})")
    yield from _check_domain()


def _check_domain() -> Iterator[Finding]:
    text = os.environ.get("ROS_DOMAIN_ID", "0")
    if not text.isdigit() or int(text) > 101:
        yield Finding(
            "ROS_DOMAIN_ID", "WARN", text, "a number 0..101: others collide with ports in use"
        )


def check_launch() -> Iterator[Finding]:
    """Whether ``ros2 launch`` can be used."""
    answer = run_python("import launch_ros.actions")
    if answer.ok and shutil.which("ros2"):
        yield Finding("ros2 launch", "OK", shutil.which("ros2") or "")
    else:
        yield Finding(
            "ros2 launch",
            "WARN",
            "not installed",
            "only needed for the launch files; comes with an installed ROS 2, not with the wheels",
        )


# The machine: compiler, cache folder, ports, processor and memory --------------------------------

FUNCTION = """
double cards_doctor(double x) {
    return 2.0 * x;
}
"""

VIEW_PORT = 8080
MEMORY_NEEDED = 2.0
"""Compiling the model of a large robot takes this much, [GiB]."""


def check_compiler(here: Installation) -> Iterator[Finding]:
    """Compile a function, load it, call it."""
    try:
        from cards_core.codegen.toolchain import find_compiler
    except ImportError as error:
        yield Finding("C compiler", "WARN", f"not looked at: {error}", here.install(again=True))
        return
    compiler = find_compiler()
    if compiler is None:
        yield Finding(
            "C compiler",
            "WARN",
            "none; CasADi evaluates the models, which is much slower",
            "apt install gcc",
        )
        return
    with tempfile.TemporaryDirectory() as folder:
        source, library = Path(folder, "doctor.c"), Path(folder, "doctor.so")
        source.write_text(FUNCTION)
        answer = run([compiler, "-shared", "-fPIC", "-O2", str(source), "-o", str(library)])
        if not answer.ok:
            yield Finding(
                "C compiler", "WARN", f"{compiler}: {answer.text}", "apt install gcc libc6-dev"
            )
            return
        try:
            function = ctypes.CDLL(str(library)).cards_doctor
            function.restype, function.argtypes = ctypes.c_double, [ctypes.c_double]
            value = function(21.0)
        except OSError as error:
            yield Finding(
                "C compiler",
                "WARN",
                f"{compiler}: its library cannot be loaded: {error}",
                "let TMPDIR and CARDS_CACHE name folders that are not mounted noexec",
            )
            return
    if value == 42.0:
        yield Finding("C compiler", "OK", compiler)
    else:
        yield Finding("C compiler", "WARN", f"{compiler} computes 2 * 21 = {value}", "another CC")


def check_cache(here: Installation) -> Iterator[Finding]:
    """Whether compiled models can be kept."""
    try:
        from cards_core.codegen.cache import cache_folder, trusted_cache
    except ImportError as error:
        yield Finding("cache folder", "WARN", f"not looked at: {error}", here.install(again=True))
        return
    folder = cache_folder()
    try:
        trusted_cache()
        with tempfile.NamedTemporaryFile(dir=folder):
            pass
    except OSError as error:
        yield Finding(
            "cache folder",
            "WARN",
            f"{folder}: {error.strerror}; models are recompiled each time",
            "let CARDS_CACHE name a folder that you may write, and nobody else",
        )
        return
    models = sum(1 for _ in folder.glob("*/*.so"))
    yield Finding("cache folder", "OK", f"{folder}, {models} compiled models")


def check_ports() -> Iterator[Finding]:
    """The browser view's port."""
    with socket.socket() as server:
        server.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            server.bind(("127.0.0.1", VIEW_PORT))
            yield Finding("browser port", "OK", f"127.0.0.1:{VIEW_PORT} is free")
        except OSError as error:
            yield Finding(
                "browser port",
                "WARN",
                f"127.0.0.1:{VIEW_PORT}: {error.strerror}",
                "end the program that has it, or choose another port for the view",
            )


def check_size() -> Iterator[Finding]:
    """Processor cores and memory."""
    cores = len(os.sched_getaffinity(0))
    if cores < 2:
        yield Finding(
            "processor", "WARN", "1 core", "mode:=paced: realtime needs one core per loop"
        )
    else:
        yield Finding("processor", "OK", f"{cores} cores")
    memory = _available_memory()
    if memory is None:
        return
    if memory < MEMORY_NEEDED:
        yield Finding(
            "memory",
            "WARN",
            f"{memory:.1f} GiB available",
            f"{MEMORY_NEEDED:.0f} GiB while a model is compiled; close other programs",
        )
    else:
        yield Finding("memory", "OK", f"{memory:.1f} GiB available")


def _available_memory() -> float | None:
    try:
        for line in Path("/proc/meminfo").read_text().splitlines():
            if line.startswith("MemAvailable:"):
                return int(line.split()[1]) / 2**20
    except (OSError, ValueError, IndexError):
        pass
    return None


# What real and emulated boards need: serial ports, cross compiler, QEMU --------------------------

PROGRAM = """
#include <math.h>
#include <stdint.h>
volatile float cards_doctor;
int main(void) { cards_doctor = sqrtf(cards_doctor); return 0; }
"""

CROSS_COMPILER = "arm-none-eabi-gcc"
CROSS_FLAGS = "-mcpu=cortex-m4 -mthumb -mfpu=fpv4-sp-d16 -mfloat-abi=hard -specs=nosys.specs"
CROSS_FIX = "apt install gcc-arm-none-eabi libnewlib-arm-none-eabi"
QEMU = "qemu-system-arm"
QEMU_FIX = "apt install qemu-system-arm"
MACHINE = "netduinoplus2"
SERIAL_PATTERNS = ("/dev/ttyACM*", "/dev/ttyUSB*")
GROUP = "dialout"


def check_serial_ports() -> Iterator[Finding]:
    """Whether the ports of boards that are plugged in may be opened, or could be."""
    devices = sorted(name for pattern in SERIAL_PATTERNS for name in glob.glob(pattern))
    closed = [name for name in devices if not os.access(name, os.R_OK | os.W_OK)]
    fix = f"sudo usermod -aG {GROUP} $USER, then log in again"
    if closed:
        yield Finding("serial ports", "WARN", f"no permission for {', '.join(closed)}", fix)
    elif devices:
        yield Finding("serial ports", "OK", ", ".join(devices))
    elif _may_open_ports():
        yield Finding("serial ports", "OK", "none (no robot plugged in)")
    else:
        text = f"none (no robot plugged in); you are not in group {GROUP}, which a robot needs"
        yield Finding("serial ports", "OK", f"{text}: {fix}")


def _may_open_ports() -> bool:
    try:
        number = grp.getgrnam(GROUP).gr_gid
    except KeyError:
        return True  # this system does it another way
    return os.geteuid() == 0 or number in os.getgroups()


def check_cross_compiler() -> Iterator[Finding]:
    """Compile and link a program for the processor of the boards."""
    part = "ARM compiler"
    compiler = shutil.which(CROSS_COMPILER)
    if compiler is None:
        yield Finding(part, "WARN", "none; the firmware of the boards cannot be built", CROSS_FIX)
        return
    with tempfile.TemporaryDirectory() as folder:
        source, program = Path(folder, "doctor.c"), Path(folder, "doctor.elf")
        source.write_text(PROGRAM)
        answer = run([compiler, *CROSS_FLAGS.split(), str(source), "-lm", "-o", str(program)])
    if answer.ok:
        version = run([compiler, "-dumpfullversion"])
        yield Finding(part, "OK", f"{compiler} {version.text}")
    else:
        yield Finding(part, "WARN", f"{compiler}: {answer.text}", CROSS_FIX)


def check_emulator() -> Iterator[Finding]:
    """Whether QEMU is there and knows the board."""
    part = "board emulator"
    qemu = shutil.which(QEMU)
    if qemu is None:
        yield Finding(
            part, "WARN", "none; ./cards demo --hil then needs --firmware host", QEMU_FIX
        )
        return
    answer = run([qemu, "-M", "help"])
    if not answer.ok:
        yield Finding(part, "WARN", f"{qemu}: {answer.text}", QEMU_FIX)
    elif MACHINE not in answer.text:
        yield Finding(part, "WARN", f"{qemu} has no machine {MACHINE}", f"{QEMU_FIX} (7.2 has it)")
    else:
        yield Finding(part, "OK", f"{qemu}, machine {MACHINE}")
