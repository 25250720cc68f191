"""Command line of the importer: ``./cards import cad ASSEMBLY -o DIR``."""

from __future__ import annotations

import argparse
import json
from collections.abc import Sequence
from pathlib import Path

from cards_core.errors import CardsError
from cards_core.exit_codes import ExitCode
from cards_core.files import check_new, write_atomically
from cards_core.formats.cad.importer import Recognised, import_cad, recognise
from cards_core.formats.cad.materials import DENSITIES
from cards_core.formats.cad.propose import propose
from cards_core.formats.cad.report import candidate_section, feature_data
from cards_core.formats.cad.worker import TOLERANCE
from cards_core.formats.imports.command import (
    Progress,
    add_output_options,
    import_command,
    importer_parser,
    nonempty,
    number_type,
    run_command,
)
from cards_core.formats.imports.model import ImportedModel

EXAMPLES = """\
examples:
  ./cards import cad arm.step --propose arm.yaml         what is in it, and joints to confirm
  ./cards import cad arm.step --config arm.yaml -o robots
  ./cards import cad arm.FCStd -o robots                 a document with CROSS links and joints
  ./cards import cad arm.step --config arm.yaml          check only, write nothing
  ./cards import cad robot.sdf -o robots                 muscles from frames 'muscle:biceps:1', ...
  ./cards import cad --materials                         materials and their densities

The folder DIR/<name> gets model.sdf, model.config, the meshes, import_report.md and
import_report.json. See docs/import_cad.md, and docs/tutorial_cad.md to begin with.
"""


def make_parser() -> argparse.ArgumentParser:
    """Return the parser of the importer's options."""
    parser = importer_parser(
        "cad",
        "Import a robot from a CAD assembly, STEP or FreeCAD: links with mass and "
        "inertia from volume and material, meshes, joints, muscles from names of frames and "
        "points, and a report that says what was recognised and what to answer.",
        EXAMPLES,
    )
    parser.add_argument(
        "assembly", metavar="ASSEMBLY", nargs="?", help="a .step, .stp, .FCStd or .sdf file"
    )
    add_output_options(parser)
    parser.add_argument(
        "--config", type=nonempty, metavar="FILE", help="YAML: joints, materials, muscles"
    )
    parser.add_argument(
        "--propose",
        type=nonempty,
        metavar="FILE",
        help="write a configuration to begin with, and no robot",
    )
    parser.add_argument(
        "--material",
        choices=sorted(DENSITIES),
        metavar="M",
        help="of bodies that nothing else is said about",
    )
    parser.add_argument(
        "--tolerance",
        type=number_type(float, lambda value: 1e-6 <= value <= 0.1, ": expected 1e-6 to 0.1 [m]"),
        default=TOLERANCE,
        metavar="T",
        help=f"largest distance of a mesh from its surface, in m (default {TOLERANCE:g})",
    )
    parser.add_argument(
        "--no-collisions", action="store_true", help="no collision shapes (else convex hulls)"
    )
    parser.add_argument(
        "--materials", action="store_true", help="list materials and their densities"
    )
    return parser


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command and return its exit code.

    Args:
        argv: Arguments after ``import cad``; default those of the process.
    """
    parser = make_parser()
    options = parser.parse_args(argv)
    if options.materials:
        return _list_materials(as_json=options.json)
    if options.assembly is None:
        parser.error("the following arguments are required: ASSEMBLY")
    if options.propose:
        if options.output:
            parser.error("--propose with -o: expected one of them")
        return run_command(options, _propose)
    return import_command(parser, argv, _import)


def _import(options: argparse.Namespace, progress: Progress) -> ImportedModel:
    return import_cad(
        options.assembly,
        config=options.config,
        material=options.material,
        tolerance=options.tolerance,
        collisions=not options.no_collisions,
        name=options.name,
        progress=progress,
    )


def _propose(options: argparse.Namespace) -> int:
    target = Path(options.propose)
    check_new(target, force=options.force)
    with Progress(options) as progress:
        found = recognise(
            options.assembly,
            config=options.config,
            material=options.material,
            tolerance=options.tolerance,
            progress=progress,
        )
    try:
        write_atomically(target, propose(found))
    except OSError as error:
        raise CardsError(f"{target}: cannot be written: {error.strerror or error}") from None
    if options.json:
        print(json.dumps(_recognised(found, target), indent=2, allow_nan=False))
        return ExitCode.DONE
    if not options.quiet:
        for item in found.job.findings:
            print(item)
        for candidate in found.candidates:
            print(
                f"{candidate.kind} joint? {candidate.links[0]} and {candidate.links[1]}: "
                f"{candidate.features[0]} in {candidate.features[1]}"
            )
    mass = sum(body.inertia.mass for body in found.bodies)
    print(
        f"{len(found.layout.links)} links of {len(found.bodies)} bodies, {mass:.4g} kg, "
        f"{len(found.marked)} markers, {len(found.candidates)} joints to confirm"
    )
    print(f"written to {target}; look it through, then: --config {target} -o DIR")
    return ExitCode.DONE


def _recognised(found: Recognised, target: Path) -> dict[str, object]:
    return {
        "format": "cards-cad-1",
        "output": str(target),
        "source": str(found.source),
        "unit": found.job.assembly.unit,
        "links": list(found.layout.links),
        "bodies": [
            {"path": b.path, "link": b.link, "density": b.density, "mass": b.inertia.mass}
            for b in found.bodies
        ],
        "markers": [item.name for item in found.marked],
        "features": [feature_data(item, False) for item in found.features],
        "joint_candidates": candidate_section(found.candidates).data,
        "findings": [dict(item.__dict__) for item in found.job.findings],
    }


def _list_materials(*, as_json: bool) -> int:
    if as_json:
        print(json.dumps(dict(sorted(DENSITIES.items())), indent=2))
        return ExitCode.DONE
    width = max(len(name) for name in DENSITIES)
    for name, density in sorted(DENSITIES.items()):
        print(f"{name:<{width}}  {density:7g} kg/m^3")
    return ExitCode.DONE
