"""The tetrahedral complex without gravity under a learned pattern, beside NASA's toolkit.

There the cables have motors (eq. 3.3 of [Mirletz2016]) and the rate in their impedance law is
that of the winch. NTRTsim 0443cbd5, Bullet 2.82 in double precision, sequential impulses, 1 ms.
"""

import re
import shutil
from dataclasses import replace

import numpy as np
from nasa_structures import NASA, needs_nasa_data

from cards_core.control import ControlModel, make_controller
from cards_core.control.cpg.ntrt import read_json
from cards_core.muscles.command import IMPEDANCE
from cards_core.muscles.impedance import ImpedanceLaw
from cards_core.shared_files import find_file
from cards_core.tensegrity import build, to_robot
from cards_sim.simulator import Simulator

STIFFNESS = 1000.0
GAINS = {"position_gain": 20_000 * STIFFNESS, "velocity_gain": 5 * STIFFNESS}
"""P = 20000 and D = 5 of the toolkit's loop of the tension, at a spool of one of its lengths."""

INERTIA = np.diag([5.6406e-3, 5.6406e-3, 5.5992e-3])
"""Of a vertebra there, from its bounding box; our z is its y."""

CABLES = (*range(8), 36)


def spine(folder):
    """Return the model of ours with rotors, and the law by the rate of the winch."""
    source = find_file("structure", folder="models/tetrahedral_6", suffix=".yaml").parent
    shutil.copytree(source, folder / "spine")
    file = folder / "spine" / "structure.yaml"
    gains = ", ".join(f"{name}: {value}" for name, value in GAINS.items())
    text = file.read_text()
    for old, new in (
        ("{type: motor,", f"{{type: motor, rotor: true, {gains},"),
        ("tension_floor: 0}", "tension_floor: 0, rate: winch}"),
        ("contact: true", "contact: false"),
    ):
        assert text.count(old) == 1
        text = text.replace(old, new)
    file.write_text(text)
    robot = to_robot(build(file))
    links = tuple(
        replace(link, inertia=replace(link.inertia, tensor=INERTIA)) for link in robot.links
    )
    return replace(robot, gravity=np.zeros(3), links=links)


def oracle():
    """Return places of the bodies [m] in our axes, and tensions of `CABLES` [N], by step."""
    found = {}
    for line in (NASA / "oracle" / "tc6_zero_gravity_feedback.txt").read_text().splitlines():
        if line.startswith("==="):
            places, tensions = found.setdefault(int(line.split()[2]), ([], []))
        elif found and line.startswith("seg"):
            x, y, z = (float(word) for word in re.findall(r"-?[\d.]+", line.split("(")[1]))
            places.append([x, -z, y])
        elif found and line.startswith("c"):
            tensions.append(float(line.rsplit("=", 1)[1]))
    return {
        step: (0.01 * np.array(places), 0.01 * np.array(tensions))
        for step, (places, tensions) in found.items()
    }


@needs_nasa_data
def test_the_learned_pattern_moves_the_spine_as_in_the_toolkit(tmp_path):
    """In the toolkit itself, small changes grow to 2 mm within a second.

    Another step or gyroscopic terms move segment 0 by 1 to 2 mm and tensions by up to 0.8 N.
    """
    robot = spine(tmp_path)
    folder = NASA / "resources" / "src" / "bmirletz" / "TetrahedralComplex_Contact"
    controller = make_controller(
        "cpg", ControlModel(robot), pattern=read_json(folder / "tcContact.json"), ramp_time=0.0
    )
    law = ImpedanceLaw(robot.muscles)
    law.active[:] = law.any_active = True
    sim = Simulator(robot, 1e-3)
    kinds = np.full(len(robot.muscles), IMPEDANCE)
    start = sim.link_poses()[:, :3, 3]
    expected = oracle()
    for step in range(1001):
        state = sim.state
        rest = state.actuators.reshape(-1, 3)[:, 0]
        # the toolkit's tension is the elastic one
        elastic = np.maximum(STIFFNESS * (state.muscle_lengths - rest), 0.0)
        controller.step(replace(state, tensions=elastic))
        lengths, rates = controller.command[0].rest_lengths, controller.command[0].rest_rates
        law.rest_length[:], law.rest_rate[:] = lengths, rates
        before = sim.link_poses()[:, :3, 3] - start
        sim.step(np.zeros(len(kinds)), kinds, impedance=law)
        if step not in expected or step < 2:
            continue
        # it moves first and winds then: with the rest lengths after this step
        rest = sim.state.actuators.reshape(-1, 3)[:, 0]
        tensions = np.maximum(STIFFNESS * (state.muscle_lengths - rest), 0.0)[list(CABLES)]
        places = expected[step][0] - expected[1][0]
        off = np.linalg.norm(before - places, axis=1)
        missing = np.abs(tensions - expected[step][1])
        print(f"step {step}: {1e3 * off.max():.2f} mm, {missing.max():.2f} N")
        if step <= 20:
            assert off.max() < 1e-9
            assert missing.max() < 1e-3
        elif step <= 200:
            assert off.max() < 0.5e-3
            assert missing.max() < 0.5
        else:
            assert off.max() < 2.5e-3
            assert np.median(missing) < 0.8
    assert off[0] < 2e-3
    assert missing.mean() < 0.8
