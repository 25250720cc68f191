"""The gait that the authors learned, as NASA's toolkit ships it, in our simulator.

The set is no part of CARDS; without a clone of the toolkit the experiment is skipped. Its winches
have rotors (eq. 3.3), and the rate in the impedance law of its cables is that of the winch, as
there.
"""

from __future__ import annotations

import shutil
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from cards_bringup.reproduce.experiment import (
    Band,
    Claim,
    Experiment,
    FinishedRun,
    Outcome,
    Setup,
    Tell,
)
from cards_bringup.reproduce.gait_run import Ensemble, gait_run
from cards_bringup.reproduce.spine_run import NTRT_VARIABLE, ntrt_folder
from cards_bringup.reproduce.tensegrity_crawl import PAPER
from cards_bringup.reproduce.tensegrity_gaits import (
    BLOCK_CLAIMS,
    FEEDBACK_RUNS,
    GAIT,
    NOTES,
    QUICK,
    TABLE,
    block_outcome,
    feedback_outcome,
    ratio_claims,
)
from cards_core.errors import CardsError
from cards_core.formats.sdf.writer import write_model
from cards_core.shared_files import find_file
from cards_core.tensegrity import build, to_robot

FOLDER = "resources/src/bmirletz/TetrahedralComplex_Contact"
PATTERN = "tcContact.json"

CHANGES = (
    ("{type: motor,", "{type: motor, rotor: true, position_gain: 2e7, velocity_gain: 5e3,"),
    ("tension_floor: 0}", "tension_floor: 0, rate: winch}"),
)
"""What the structure file of ``tetrahedral_6`` lacks of the toolkit's winches. The gains are those
of its loop of the tension, P = 20,000 and D = 5 at a stiffness of 1000 N/m."""

NAME = "tetrahedral_6_toolkit"


def missing_set() -> str:
    """Return why the learned set cannot be run here; empty if it can."""
    base = ntrt_folder(FOLDER)
    if base is not None and (base / FOLDER / PATTERN).is_file():
        return ""
    return (
        f"{FOLDER}/{PATTERN} of NTRTsim is not here (expected: {NTRT_VARIABLE} names a clone of "
        "github.com/NASA-Tensegrity-Robotics-Toolkit/NTRTsim)"
    )


def toolkit_run(setup: Setup, folder: Path, tell: Tell) -> dict[str, Any]:
    """Run the spine with the toolkit's winches under the toolkit's pattern several times.

    Args:
        setup: As for `gait_run`, without ``robot`` and ``pattern``.
        folder: Gets the model.
        tell: Told the share that is done, 0 to 1.

    Returns:
        As `gait_run`.

    Raises:
        CardsError: The set is not here.
    """
    base = ntrt_folder(FOLDER)
    if base is None:
        raise CardsError(missing_set())
    own = {"robot": str(spine_with_rotors(folder / NAME)), "pattern": str(base / FOLDER / PATTERN)}
    return gait_run({**setup, **own}, folder, tell)


def spine_with_rotors(folder: Path) -> Path:
    """Write the spine of six vertebrae with rotors in its winches; return the path of its SDF.

    Args:
        folder: Where to; made.
    """
    source = find_file("structure", folder="models/tetrahedral_6", suffix=".yaml").parent
    shutil.copytree(source, folder)
    file = folder / "structure.yaml"
    text = file.read_text(encoding="utf-8")
    for old, new in CHANGES:
        assert text.count(old) == 1  # the file is ours
        text = text.replace(old, new)
    file.write_text(text, encoding="utf-8")
    write_model(replace(to_robot(build(file)), name=NAME), folder)
    return folder / "model.sdf"


RUNS: dict[str, Setup] = {
    **FEEDBACK_RUNS,
    "blocks_feedback": {"terrain": "blocks:friction=0.5,seed={seed}"},
    "blocks_alone": {"terrain": "blocks:friction=0.5,seed={seed}", "feedback": False},
}


def toolkit_outcome(runs: Mapping[str, FinishedRun]) -> Outcome:
    """Evaluate the distances on flat ground and hills, and escapes from blocks."""
    gaits = feedback_outcome({name: runs[name] for name in FEEDBACK_RUNS})
    blocks = block_outcome({name: runs[f"blocks_{name}"] for name in ("feedback", "alone")})
    distances = {
        name: 100.0 * Ensemble.of(runs[name]).median("distance") for name in FEEDBACK_RUNS
    }
    ratios = {name: gaits.values[name] for name in ("flat_ratio", "hills_ratio")}
    return Outcome(
        {**distances, **ratios, **blocks.values},
        {**gaits.tables, **blocks.tables},
        {**gaits.plots, **blocks.plots},
    )


_CHAOTIC = "a single distance is published, and those on hills are chaotic: within a factor of 3"

_FLAT = "within a tenth; friction of contacts differs, see 003.CRAWL"

CLAIMS = (
    *(
        Claim(
            name,
            f"distance in 60 s, {name.replace('_', ', ').replace('alone', 'without feedback')}",
            TABLE,
            Band(distance / factor, distance * factor),
            "cm",
            published=distance,
            why=why,
        )
        for name, distance, factor, why in (
            ("flat_feedback", 487.1, 1.1, _FLAT),
            ("flat_alone", 492.8, 1.1, _FLAT),
            ("hills_feedback", 105.3, 3.0, _CHAOTIC),
            ("hills_alone", 30.4, 3.0, _CHAOTIC),
        )
    ),
    *ratio_claims(),
    *BLOCK_CLAIMS,
)

EXPERIMENTS = (
    Experiment(
        PAPER,
        "TOOLKIT",
        "The gait that the authors learned, on flat ground, hills and blocks",
        {key: value for key, value in GAIT.items() if key != "pattern"},
        CLAIMS,
        toolkit_run,
        toolkit_outcome,
        RUNS,
        (
            f"The set is {FOLDER}/{PATTERN} of the toolkit, which is no part of CARDS; without it "
            "this is skipped. The spine has the rotors of the toolkit's winches.",
            NOTES[1],
        ),
        QUICK,
        missing_set,
    ),
)
