"""The folder of a fit: its state while it runs, and the fitted robot as a new SDF.

``state.json`` and ``specification.yaml`` are what it takes to go on after Ctrl-C or a kill. The
SDF is the text of the robot's own file with other numbers in it; files beside that one to which it
refers, meshes say, are copied.
"""

from __future__ import annotations

import json
import logging
import shutil
from pathlib import Path, PurePosixPath

import numpy as np

from cards_core.analysis.muscle_fit.fit import MuscleFit
from cards_core.analysis.muscle_fit.reading import read_specification
from cards_core.analysis.muscle_fit.result import FitResult, markdown
from cards_core.analysis.muscle_fit.specification import FitSpecification
from cards_core.errors import CardsError
from cards_core.files import back_up, write_atomically
from cards_core.foreign_files import read_json
from cards_core.formats import load, read_sdf, to_sdf
from cards_core.formats.sdf.muscle_text import MuscleText
from cards_core.formats.xml_lines import XmlElement, parse_xml
from cards_core.named_files import Confinement, confinement
from cards_core.robot.elements import Muscle
from cards_core.robot.model import Robot

LOG = logging.getLogger(__name__)

STATE, SPECIFICATION = "state.json", "specification.yaml"
REPORT, REPORT_JSON = "report.md", "report.json"


def check_new(folder: Path, *, force: bool) -> None:
    """Refuse a folder that has something already.

    Args:
        folder: Where a fit shall go.
        force: Whether an earlier result may be replaced.

    Raises:
        CardsError: It is no folder, or holds something.
    """
    if folder.exists() and not folder.is_dir():
        raise CardsError(f"'{folder}' is a file (expected: a folder, or none)")
    if force or not folder.exists() or not any(folder.iterdir()):
        return
    if (folder / STATE).is_file():
        raise CardsError(
            f"'{folder}' has an unfinished fit (expected: --resume {folder}, or --force for a new "
            "one)"
        )
    raise CardsError(f"'{folder}' is not empty (expected: a new folder, or --force)")


def save_state(fit: MuscleFit, folder: Path) -> None:
    """Write what `resumed` needs. Raises `OSError`."""
    specification = fit.specification
    file = _file_of(specification.robot)
    state = {
        "source": None if file is None else str(file.resolve()),
        "model": specification.robot.name,
        "specification_folder": str(specification.folder.resolve()),
        "fit": fit.state(),
    }
    write_atomically(folder / SPECIFICATION, specification.text)
    write_atomically(folder / STATE, json.dumps(state))


def resumed(folder: Path, robot: Robot | None = None) -> MuscleFit:
    """Return the unfinished fit of a folder.

    Args:
        folder: The folder.
        robot: The robot, where it was not read from a file.

    Raises:
        CardsError: There is none, or its robot is not what it was.
    """
    if not (folder / STATE).exists():
        what = "a finished fit" if (folder / REPORT_JSON).is_file() else "no unfinished fit"
        raise CardsError(
            f"'{folder}' has {what} (expected: a folder in which a fit was interrupted)"
        )
    state = read_json(folder / STATE)
    if not isinstance(state, dict) or not {"source", "model", "fit"} <= set(state):
        raise CardsError(
            f"{folder / STATE} is no state of a fit (expected: one that it has saved)"
        )
    if robot is None:
        if not isinstance(state["source"], str):
            raise CardsError(
                f"the robot of '{folder}' was not read from a file (expected: the robot itself)"
            )
        robot = load(state["source"], model=state["model"])
    beside = Path(str(state.get("specification_folder", folder)))
    specification = read_specification(folder / SPECIFICATION, robot, folder=beside)
    fit = MuscleFit(specification)
    fit.restore(state["fit"])
    return fit


def _file_of(robot: Robot) -> Path | None:
    path = Path(robot.source) if robot.source else None
    try:
        return path if path is not None and path.is_file() else None
    except (OSError, ValueError):
        return None


def fitted_text(result: FitResult) -> bytes:
    """Return the SDF of the fitted robot.

    Raises:
        DescriptionError: The robot's file has changed since it was read, or its muscles stand in a
            file that it includes; or what came out is refused on reading, e.g. because a via point
            is within a surface at home.
    """
    before = result.specification.robot
    file = _file_of(before)
    if file is None:
        return to_sdf(result.robot).encode()
    text = _text(file, before, result.robot)
    again = read_sdf(text, name=before.source, base=file.parent, model=before.name)
    for mine, read in zip(result.robot.muscles, again.muscles, strict=True):
        _check_same(mine, read)
    return text


def check_writable(specification: FitSpecification, folder: Path) -> None:
    """Refuse, before a long search, a robot whose file cannot get the result, or is the result's.

    Args:
        specification: The fit.
        folder: Where the result will go.

    Raises:
        CardsError: The robot's own file is there.
        DescriptionError: See `fitted_text`.
    """
    robot, variables = specification.robot, specification.variables
    file = _file_of(robot)
    if file is not None:
        model = folder / file.name
        if model.exists() and model.samefile(file):
            raise CardsError(
                f"'{folder}' has the robot's own file (expected: another folder, the robot stays)"
            )
        elsewhere = variables.random(np.random.default_rng(0))
        _text(file, robot, variables.apply(elsewhere))


def _text(file: Path, before: Robot, after: Robot) -> bytes:
    """Return the text of the robot's file with the muscles of another robot."""
    text = MuscleText(file.read_bytes(), before.source or file, before.name)
    return text.with_values(before, after)


def _check_same(mine: Muscle, read: Muscle) -> None:
    """Refuse a text that does not say what was meant: that would be a mistake of ours."""
    same = mine.name == read.name and all(
        a.link == b.link and (a.position == b.position).all()
        for a, b in zip(mine.via_points, read.via_points, strict=True)
    )
    if not same:
        raise CardsError(
            f"muscle '{mine.name}' of the new file is not the fitted one (expected: the robot's "
            "file unchanged since it was read)"
        )


def save_result(result: FitResult, folder: Path) -> list[Path]:
    """Write the fitted robot, the report and the files that the robot refers to.

    Args:
        result: The result.
        folder: An existing folder.

    Returns:
        The files, the SDF first.

    Raises:
        DescriptionError: See `fitted_text`.
        OSError: A file cannot be written.
    """
    text = fitted_text(result)
    file = _file_of(result.specification.robot)
    model = folder / ("model.sdf" if file is None else file.name)
    if file is not None:
        allowed = confinement(file.resolve().parent)
        _copy_referenced(parse_xml(text), file.parent, folder, allowed)
        config = file.parent / "model.config"
        if config.is_file() and _may_be_copied(config, allowed):
            shutil.copyfile(config, folder / "model.config")
    if model.is_file() and model.read_bytes() != text:
        back_up(model)  # somebody may have edited it
    write_atomically(model, text)
    if result.specification.text:
        write_atomically(folder / SPECIFICATION, result.specification.text)
    write_atomically(folder / REPORT, markdown(result))
    write_atomically(folder / REPORT_JSON, json.dumps(result.summary(), indent=2) + "\n")
    return [model, folder / REPORT, folder / REPORT_JSON]


def _may_be_copied(file: Path, allowed: Confinement) -> bool:
    """Return whether a file is where the robot may name files, links followed; warn if not."""
    if allowed.holds(file):
        return True
    LOG.warning("%s is a link to outside of the model: not copied", file)
    return False


def _copy_referenced(element: XmlElement, base: Path, folder: Path, allowed: Confinement) -> None:
    """Copy files and folders beside the SDF that it names by relative paths within its folder."""

    def outside(place: str, names: list[str]) -> list[str]:
        return [name for name in names if not _may_be_copied(Path(place, name), allowed)]

    names = {element.get("uri", "")}
    if element.tag in ("uri", "rods"):
        names.add((element.text or "").strip())
    for name in names - {""}:
        path = PurePosixPath(name)
        if "://" in name or path.is_absolute() or ".." in path.parts or not (base / name).exists():
            continue
        if not _may_be_copied(base / name, allowed):
            continue
        target = folder / path
        target.parent.mkdir(parents=True, exist_ok=True)
        if (base / name).is_dir():
            shutil.copytree(base / name, target, dirs_exist_ok=True, ignore=outside)
        else:
            shutil.copyfile(base / name, target)
    for child in element:
        _copy_referenced(child, base, folder, allowed)
