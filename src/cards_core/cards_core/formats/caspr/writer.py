"""Write an imported model as a folder: SDF, trajectories, report. All of it or nothing."""

from __future__ import annotations

import os
import shutil
import tempfile
from pathlib import Path

from cards_core.errors import CardsError, DescriptionError
from cards_core.files import inside, making
from cards_core.formats.caspr.importer import CasprModel
from cards_core.formats.caspr.trajectories_yaml import sampled_file_name, trajectory_files
from cards_core.formats.sdf.reader import read_sdf
from cards_core.formats.sdf.writer import write_model
from cards_core.trajectories.library import load_references
from cards_core.trajectories.sampled import write_traj

REPORT = "import_report"
"""Stem of the report's two files; its presence marks a folder that an import made."""


def write_import(model: CasprModel, out_dir: str | Path, *, force: bool = False) -> Path:
    """Write ``<out_dir>/<name>/`` and return its path.

    Files: ``model.sdf`` and ``model.config``, ``trajectories.yaml`` (more for other operational
    spaces, ``.traj`` for sampled ones), ``import_report.md`` and ``.json``. They are written to a
    temporary folder beside the target, read back, and put in place by renaming it.

    Args:
        model: From `import_caspr`.
        out_dir: Folder that gets the model's folder; made if need be.
        force: Replace the folder of an earlier import.

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
    parent = Path(out_dir)
    target = inside(parent, model.name)
    _check_target(target, force=force)
    try:
        with making(parent):  # a folder that nothing could be written to is gone again
            work = Path(tempfile.mkdtemp(prefix=f".{model.name}-", dir=parent))
            _fill(model, work, target)
    except OSError as error:
        raise CardsError(f"{parent}: cannot be written: {error.strerror or error}") from None
    return target


def _fill(model: CasprModel, work: Path, target: Path) -> None:
    try:
        fresh = work / model.name
        fresh.mkdir()
        _write_files(model, fresh)
        _verify(fresh)
        if os.path.lexists(target):
            os.rename(target, work / "replaced")
        os.rename(fresh, target)
    except OSError as error:
        # an earlier import that was moved aside must not get lost
        if (work / "replaced").exists() and not os.path.lexists(target):
            os.rename(work / "replaced", target)
        raise CardsError(f"{target}: cannot be written: {error.strerror or error}") from None
    finally:
        if os.path.lexists(target) or not (work / "replaced").exists():
            shutil.rmtree(work, ignore_errors=True)


def _check_target(target: Path, *, force: bool) -> None:
    if not os.path.lexists(target):
        return
    if not force:
        raise CardsError(f"{target} exists already (expected: another folder, or --force)")
    if target.is_symlink() or not (target / f"{REPORT}.json").is_file():
        raise CardsError(
            f"{target} was not made by an import and is not replaced (expected: another folder, "
            f"or one with {REPORT}.json)"
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
