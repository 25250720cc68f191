"""Fuzz targets in C of the native code: its sources, tables of robots, and a function of bytes.

    python tests/fuzz/native_targets.py TARGET [--runs N] [--seconds S] [--found FOLDER]

With clang they are libFuzzer's; with gcc alone, a driver gives them the corpus and damaged copies.
Ends with 0 if nothing was found.
"""

from __future__ import annotations

import argparse
import math
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path

import numpy as np

HERE = Path(__file__).resolve().parent
HARNESSES = HERE / "native"
CORPUS = HERE / "corpus_native"
sys.path.insert(0, str(HERE.parents[1] / "src/cards_core/test/helpers"))

FLAGS = ("-std=gnu11", "-g1", "-w", "-fno-omit-frame-pointer", "-fno-sanitize-recover=all")

KINDS = "address,undefined,float-cast-overflow"

ROD_FIELDS = ("inv_kse", "inv_kbt", "v0", "u0", "force", "moment")
"""Arrays of `NativeRod`, in their order."""

LONGEST = 1024
"""Longest input, bytes."""

HANG = 20
"""Time that one input may take, [s]."""


def paths() -> str:
    """Return the tables of muscles over every surface alone and in chains, with their code."""
    from geodesic_cases import paths_robot

    from cards_core.paths.wrapping.native_source import source_text
    from cards_core.paths.wrapping.problem import GeodesicProblem
    from cards_core.robot.elements import Cylinder, Ellipsoid, Mesh, Sphere, Torus
    from cards_core.spatial import Pose

    def at(x: float) -> Pose:
        return Pose.from_xyz_rpy([x, 0.01, 0.0], [0.3, 0.2, 0.1 + x])

    roll = Cylinder(0.03, math.inf)

    egg, needle = Ellipsoid(np.array([0.05, 0.03, 0.08])), Ellipsoid(np.array([0.004, 0.005, 0.1]))
    ring, stone = Torus(0.05, 0.01), Mesh(str(HARNESSES / "stone.obj"))
    turned = {"link": "arm"}
    chains = [
        [(egg, at(0.0), {})],
        [(needle, at(0.0), {"side": np.array([0.0, 0.05, 0.0])})],
        [(ring, at(0.0), {"inside": True})],
        [(stone, at(0.0), turned)],
        [(Sphere(0.06), at(-0.1), turned), (egg, at(0.1), {})],
        [(roll, at(-0.1), {}), (ring, at(0.05), turned), (stone, at(0.15), {})],
    ]
    ends = [([-0.25, 0.01 * k, 0.02], row, [0.25, -0.02, 0.01]) for k, row in enumerate(chains)]
    return source_text(GeodesicProblem(paths_robot(ends, ("body", "arm"))))


def contacts() -> str:
    """Return the tables of shapes of every kind on three links and the world, with their code."""
    from cards_core.paths.contacts.shapes import ContactShape, Hull, shape_tables
    from cards_core.robot.elements import Box, Capsule, Cylinder, HeightField, Sphere
    from cards_core.spatial import Pose

    def at(x: float, y: float, z: float) -> Pose:
        return Pose.from_xyz_rpy([x, y, z], [0.5 * x, 0.0, 1.5 * y])

    links, cables = 3, 3
    rng = np.random.default_rng(1)
    heights = 0.05 * rng.random((5, 6))
    heights[2, 3] = 0.2
    shapes = [
        ContactShape(0, Capsule(0.01, 0.4)),
        ContactShape(1, Capsule(0.02, 0.3), at(0.1, 0, 0)),
        ContactShape(2, Sphere(0.08)),
        ContactShape(1, Box(np.array([0.2, 0.1, 0.15])), at(0, 0.2, 0)),
        ContactShape(links, Hull(0.1 * rng.normal(size=(10, 3)))),
        ContactShape(links, HeightField(heights, (1.0, 0.8)), at(0, 0, -0.3)),
        ContactShape(2, Cylinder(0.1, 0.05)),
        ContactShape(0, Cylinder(0.03, 0.2), at(0, 0, 0.3)),
    ]
    tables = shape_tables(shapes)
    code = _native("paths/contacts", "contact_cables.c")
    names = (
        _table("double", "SHAPE_NUMBERS", tables.shapes),
        _table("long", "KIND_NUMBERS", tables.kinds),
        _table("double", "EDGE_TABLE", tables.edges),
        _table("double", "HEIGHT_TABLE", tables.heights),
        _table("unsigned char", "RIDGE_TABLE", tables.ridges),
        "#define SHAPE_TABLE ((const shape_t *)SHAPE_NUMBERS)",
        "#define KIND_TABLE ((const kind_t *)KIND_NUMBERS)",
        f"enum {{ LINKS = {links}, CABLES = {cables}, SHAPES = {len(shapes)} }};",
    )
    return "\n".join((code, *names))


def rods() -> str:
    """Return robots of rods, with every kind of joint, in space and in a plane, and their code."""
    from rod_robots import EVERY_LIMB, any_robot, plane_robot, ring_robot

    from cards_core.rods.native_library import SOURCES
    from cards_core.rods.robots.newton_solver import describe_limb
    from cards_core.rods.robots.robot import PLATE_COORDINATES, BaseKind

    folder = "rods"
    robots = [ring_robot(6), plane_robot(), any_robot(EVERY_LIMB[3:6]), any_robot(EVERY_LIMB[::9])]
    parts = [_native(folder, f"{name}.c") for name in SOURCES]
    rows = []
    for k, robot in enumerate(robots):
        gravity = np.asarray(robot.gravity, dtype=float)
        structs = []
        for limb in robot.limbs:
            rod = limb.native(gravity)
            fields = [_values(getattr(rod, name)) for name in ROD_FIELDS]
            structs.append("{" + ", ".join(fields) + f", {rod.circular}}}")
        numbers = np.stack([describe_limb(limb, np.eye(4)) for limb in robot.limbs])
        fed = [limb.base.kind is BaseKind.EXTENSIBLE for limb in robot.limbs]
        lengths = np.array([limb.length for limb in robot.limbs]) * fed
        parts.append(f"static const struct rod RODS_{k}[] = {{{', '.join(structs)}}};")
        parts.append(_table("double", f"NUMBERS_{k}", numbers))
        parts.append(_table("double", f"Q_{k}", lengths))
        plate = [robot.plate.mass, *robot.plate.com, *gravity]
        chosen = [PLATE_COORDINATES.index(name) for name in robot.controlled]
        rows.append(
            f"{{{robot.n_limbs}, {int(robot.planar)}, {len(chosen)}, {_values(chosen, int)}, "
            f"RODS_{k}, NUMBERS_{k}, Q_{k}, {_values(np.ravel(robot.plate.pose))}, "
            f"{_values(plate)}}}"
        )
    parts.append(
        "struct rod_table { int limbs, planar, controls, controlled[6]; const void *rods; "
        "const double *numbers, *q; double pose[16], plate[7]; };\n"
        f"static const struct rod_table ROBOTS[] = {{{', '.join(rows)}}};\n"
        f"enum {{ ROBOT_COUNT = {len(robots)}, MOST_LIMBS = {max(r.n_limbs for r in robots)} }};"
    )
    return "\n".join(parts)


def line() -> str:
    """Return the thread of serial lines."""
    from cards_hardware.boards import line_thread

    return line_thread.source()


@dataclass(frozen=True)
class Target:
    """A target.

    Attributes:
        source: Makes the text that the harness stands behind.
        level: Of optimisation; of long expressions more than none takes minutes.
        libraries: For the linker.
    """

    source: Callable[[], str]
    level: str = "-O1"
    libraries: tuple[str, ...] = ("-lm",)


TARGETS = {
    "paths": Target(paths),
    "contacts": Target(contacts),
    "rods": Target(rods, "-O0"),
    "line": Target(line, libraries=("-lm", "-lpthread")),
}
"""All targets by name; each has a harness ``native/NAME.c`` and seeds in ``corpus_native``."""


def _native(folder: str, name: str) -> str:
    import cards_core

    path = Path(cards_core.__file__).parent / folder / "native" / name
    return path.read_text(encoding="utf-8")


def _values(values: Iterable[float], kind: type = float) -> str:
    return "{" + ", ".join(repr(kind(v)) for v in values) + "}"


def _table(kind: str, name: str, values: np.ndarray) -> str:
    flat = [v.item() for v in np.ravel(values)]
    return f"static const {kind} {name}[{max(1, len(flat))}] = {_values(flat, type(flat[0]))};"


def seeds(name: str) -> list[Path]:
    """Return the corpus of a target."""
    return sorted(path for path in (CORPUS / name).iterdir() if path.is_file())


def program(name: str) -> str:
    """Return the text of a target without the driver."""
    texts = [(HARNESSES / "input.h").read_text(encoding="utf-8"), TARGETS[name].source()]
    return "\n".join(("#define _GNU_SOURCE", *texts, (HARNESSES / f"{name}.c").read_text()))


def has_fuzzer(folder: Path) -> str:
    """Return clang's path if it has libFuzzer, else an empty text.

    Args:
        folder: For a program that is tried.
    """
    clang = shutil.which("clang")
    if clang is None:
        return ""
    probe = folder / "probe.c"
    probe.write_text("int LLVMFuzzerTestOneInput(const char *d, long n) { return 0; }\n")
    command = [clang, f"-fsanitize=fuzzer,{KINDS}", str(probe), "-o", str(folder / "probe")]
    return "" if subprocess.run(command, capture_output=True, check=False).returncode else clang


def build(name: str, folder: Path, clang: str) -> Path:
    """Compile a target; return the program.

    Args:
        name: Of `TARGETS`.
        folder: For text and program.
        clang: With libFuzzer; empty: gcc and the driver.

    Raises:
        LookupError: There is no compiler.
        RuntimeError: It does not compile the text.
    """
    source, made = folder / f"{name}.c", folder / name
    source.write_text(program(name), encoding="utf-8")
    if clang:
        command = [clang, f"-fsanitize=fuzzer,{KINDS}", str(source)]
    else:
        compiler = shutil.which("gcc")
        if compiler is None:
            raise LookupError("no clang with libFuzzer, and no gcc (apt install clang)")
        command = [compiler, f"-fsanitize={KINDS}", str(source), str(HARNESSES / "driver.c")]
    command += [*FLAGS, TARGETS[name].level, "-o", str(made), *TARGETS[name].libraries]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        raise RuntimeError(f"{command[0]} does not compile '{name}': {done.stderr[-2000:]}")
    return made


def call(
    name: str, made: Path, clang: str, *, runs: int, seconds: int = 0, found: Path
) -> list[str]:
    """Return the command that runs a target.

    Args:
        name: Of `TARGETS`.
        made: Its program, of `build`.
        clang: As of `build`.
        runs: Inputs.
        seconds: At most so long, [s]; 0: no end. The driver knows no end.
        found: Folder for what fails, and for new inputs.
    """
    if not clang:
        return [str(made), str(runs), *map(str, seeds(name))]
    fresh = found / "corpus" / name
    fresh.mkdir(parents=True, exist_ok=True)
    return [
        *(str(made), str(fresh), str(CORPUS / name), f"-runs={runs}", "-seed=1"),
        *(f"-max_len={LONGEST}", f"-timeout={HANG}", "-rss_limit_mb=2048", "-len_control=0"),
        *(f"-max_total_time={seconds}", f"-artifact_prefix={found}/{name}-"),
        *("-print_final_stats=1", "-verbosity=1"),
    ]


def main() -> int:
    """Fuzz one target."""
    parser = argparse.ArgumentParser(
        prog="tests/fuzz/native_targets.py",
        description="Fuzz native code, guided by coverage, under the sanitizers.",
        epilog="example: python tests/fuzz/native_targets.py contacts --runs 1000000",
    )
    parser.add_argument("target", choices=[*TARGETS, "list"], help="what is fuzzed, or 'list'")
    parser.add_argument("--runs", type=int, default=10_000, help="inputs (default 10000)")
    parser.add_argument("--seconds", type=int, default=0, help="at most so long (default: no end)")
    parser.add_argument(
        "--found", type=Path, help="where inputs that fail go (default: a folder that is told)"
    )
    given = parser.parse_args()
    if given.target == "list":
        print("\n".join(TARGETS))
        return 0
    found = given.found or Path(tempfile.mkdtemp(prefix=f"cards-fuzz-{given.target}-"))
    found.mkdir(parents=True, exist_ok=True)
    print(f"findings go to {found}", file=sys.stderr, flush=True)
    with tempfile.TemporaryDirectory(prefix="cards-fuzz-") as scratch:
        folder = Path(scratch)
        clang = has_fuzzer(folder)
        try:
            made = build(given.target, folder, clang)
        except (LookupError, RuntimeError) as error:
            print(f"native_targets.py: error: {error}", file=sys.stderr)
            return 2
        if not clang:
            print("no clang with libFuzzer: corpus and damaged copies alone", file=sys.stderr)
        command = call(
            given.target, made, clang, runs=given.runs, seconds=given.seconds, found=found
        )
        return subprocess.run(command, check=False).returncode


if __name__ == "__main__":
    sys.exit(main())
