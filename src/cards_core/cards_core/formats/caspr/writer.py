"""Write an imported model as a folder: SDF, trajectories, report. All of it or nothing.

Trajectories have the format of `cards_core.trajectories.load_references`. Joint trajectories list
the joints in CASPR's order, so the numbers stand as in the CASPR file; the reader puts them in the
robot's order.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Sequence
from pathlib import Path

from cards_core.errors import DescriptionError
from cards_core.formats.caspr.importer import CasprModel
from cards_core.formats.caspr.references import SPLINES, rotations_of
from cards_core.formats.caspr.trajectories import CasprTrajectory
from cards_core.formats.imports.findings import safe_name
from cards_core.formats.imports.folder import write_import_folder
from cards_core.formats.imports.model import naming_source
from cards_core.formats.imports.source_file import REPORT
from cards_core.formats.sdf.reader import read_sdf
from cards_core.formats.sdf.writer import write_model
from cards_core.trajectories.library import load_references
from cards_core.trajectories.sampled import write_traj
from cards_core.typing import Array

# Trajectories ----------------------------------------------------------------------------------


_PLAIN = re.compile(r"[A-Za-z_][A-Za-z0-9_.-]*")
_WORDS = {
    "null",
    "true",
    "false",
    "yes",
    "no",
    "on",
    "off",
    "y",
    "n",
}  # YAML 1.1 gives these types


MAIN = "trajectories.yaml"
"""File of the joint trajectories and those of the default operational space."""


def trajectory_files(model: CasprModel) -> dict[str, str]:
    """Return file name to YAML text.

    A reader expects all operational trajectories of a file to have the same coordinates, so those
    of other operational spaces than the default get files ``trajectories_<space>.yaml``.
    """
    default = model.operational.default
    files: dict[str, list[CasprTrajectory]] = {MAIN: []}
    for item in model.trajectories:
        main = item.space == "joint" or (default and item.operational_space == default.name)
        name = MAIN if main else f"trajectories_{safe_name(item.operational_space or '')}.yaml"
        files.setdefault(name, []).append(item)
    return {name: _text(items, model) for name, items in files.items()}


def sampled_file_name(item: CasprTrajectory) -> str:
    """Return the name of the ``.traj`` file of a sampled trajectory."""
    return f"{item.name}.traj"


def _text(items: Sequence[CasprTrajectory], model: CasprModel) -> str:
    lines = [
        f"# Trajectories of the CASPR model {_comment(model.files.name)}, times in s, SI units.",
        "# Joint positions are in the order of `joints`, which is CASPR's.",
        "trajectories:" if items else "trajectories: {}",
    ]
    for item in items:
        lines.append(f"  {_scalar(item.name)}:")
        if item.kind == "file_trajectory":
            body = ["kind: file", f"file: {_scalar(sampled_file_name(item))}"]
        else:
            body = _spline(item, model)
        lines += [f"    {line}" for line in body]
    return "\n".join(lines) + "\n"


def _spline(item: CasprTrajectory, model: CasprModel) -> list[str]:
    kind = SPLINES[item.kind]
    lines = [f"kind: {kind}"]
    if item.space == "joint":
        coordinates = model.coordinates
        lines.append(f"joints: {_list(coordinates.names)}")
        names = dict(zip(coordinates.index.tolist(), coordinates.names, strict=True))
        rotations = rotations_of(item, model.bodies, coordinates)
        if rotations:
            lines.append("rotations:")
            for triple, convention in rotations:
                angles = _list([names[i] for i in triple])
                lines.append(f"  - {{coordinates: {angles}, convention: {convention}}}")
    else:
        space = model.operational_space(item.operational_space or "")
        axes = " ".join("".join(entry.axes for entry in space.entries))
        lines += [
            "space: operational",
            f"description: {json.dumps(f'axes {axes} of operational space {space.name}')}",
        ]
    if item.time_step is not None:
        lines.append(f"time_step: {item.time_step!r}")
    lines += ["time_definition: absolute", "points:"]
    last = len(item.times) - 1
    for i, time in enumerate(item.times.tolist()):
        keys = [f"time: {time!r}", f"position: {_vector(item.positions[i])}"]
        inner = kind == "cubic_average_velocity" and 0 < i < last
        if item.velocities is not None and not inner:
            keys.append(f"velocity: {_vector(item.velocities[i])}")
        if item.accelerations is not None:
            keys.append(f"acceleration: {_vector(item.accelerations[i])}")
        if item.blend_times is not None and i > 0:
            keys.append(f"blend_time: {float(item.blend_times[i - 1])!r}")
        lines.append(f"  - {{{', '.join(keys)}}}")
    return lines


def _vector(values: Array) -> str:
    return "[" + ", ".join(repr(x) for x in values.tolist()) + "]"


def _list(names: Sequence[str]) -> str:
    return "[" + ", ".join(_scalar(name) for name in names) + "]"


def _scalar(name: str) -> str:
    """Return a name as YAML text, quoted where YAML would read something else."""
    plain = _PLAIN.fullmatch(name) and name.lower() not in _WORDS
    return name if plain else json.dumps(name)


def _comment(text: str) -> str:
    return " ".join(text.split())


# Folder ----------------------------------------------------------------------------------------


def write_import(
    model: CasprModel,
    out_dir: str | Path,
    *,
    force: bool = False,
    on_kept: Callable[[Path], None] = lambda path: None,
) -> Path:
    """Write ``<out_dir>/<name>/`` and return its path.

    Files: ``model.sdf`` and ``model.config``, ``trajectories.yaml`` (more for other operational
    spaces, ``.traj`` for sampled ones), ``import_report.md`` and ``.json``.

    Args:
        model: From `import_caspr`.
        out_dir: Folder that gets the model's folder; made if need be.
        force: Replace the files of an earlier import; those that were changed are kept.
        on_kept: Called with the place of each of these.

    Raises:
        DescriptionError: The robot cannot be stated in SDF, e.g. inertia without mass.
        CardsError: The target exists, or cannot be written.
    """
    if model.sdf_robot is None:
        raise DescriptionError(
            f"the inertias cannot be repaired: {model.report.inertia.problem}",
            source=str(model.files.bodies),
            expected="positive masses",
        )

    def fill(folder: Path) -> None:
        with naming_source(model.robot, folder):
            _write_files(model, folder)
            _verify(folder)

    return write_import_folder(
        out_dir, model.name, fill, force=force, on_kept=on_kept, source=model.files.bodies
    )


def _write_files(model: CasprModel, folder: Path) -> None:
    assert model.sdf_robot is not None
    write_model(
        model.sdf_robot,
        folder,
        description=f"Imported from the CASPR model {model.files.name}, "
        f"cable set {model.cable_set.name}. See {REPORT}.md.",
    )
    for name, text in trajectory_files(model).items():
        (folder / name).write_text(text, encoding="utf-8")
    for item in model.trajectories:
        if item.kind == "file_trajectory":
            assert item.time_step is not None  # the file states it
            path = folder / sampled_file_name(item)
            write_traj(path, model.reference(item.name), item.time_step)
    (folder / f"{REPORT}.md").write_text(model.report.to_markdown(), encoding="utf-8")
    (folder / f"{REPORT}.json").write_text(model.report.to_json(), encoding="utf-8")


def _verify(folder: Path) -> None:
    """Read what was written, so that a folder in place is one that loads."""
    robot = read_sdf(folder / "model.sdf")
    for path in folder.glob("trajectories*.yaml"):
        load_references(path, names=robot.tree.position_names)
