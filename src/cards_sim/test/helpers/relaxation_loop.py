"""Muscle relaxation control of the simulated upper body: set-up that several tests share."""

from cards_core.formats import load
from cards_core.loop.control_setup import make_control_loop
from cards_core.parameters.declaration import ParameterSet
from cards_core.robot.perturb import with_payload
from cards_core.trajectories.library import from_dict
from cards_sim.build import build_host

HOME = [-0.35, 0.3, 0.0, -1.05, 0.0]
IN_HAND = [0.025, 0.0, -0.07]


def closed_loop(points, *, world="", payload=0.0, robot=None, **parameters):
    """Return host and loop; the controller does not know of the payload in the left hand."""
    robot = robot or load("musashi_like")
    steps = [{"position": points[0][1]}, *({"time": t, "position": p} for t, p in points[1:])]
    reference = from_dict(
        {
            "trajectories": {
                "task": {
                    "kind": "quintic",
                    "space": "joint",
                    "time_definition": "relative",
                    "points": steps,
                }
            }
        },
        names=robot.tree.position_names,
        operational_size=3,
        source="test",
    )["task"]
    given = {"initial_positions": points[0][1], "world": world}
    loaded = with_payload(robot, "left_hand", payload, IN_HAND) if payload else robot
    host = build_host(ParameterSet(given, "simulator"), loaded)
    own = {"reference": "", "log_dir": "", "perturbation_seed": 3, **parameters}
    return host, make_control_loop("mrc", ParameterSet(own, "mrc"), robot, reference)


def step(host, loop):
    state = host.state
    host.submit(loop.step(state))
    host.step()
    return state


def targets(rng, count):
    def arm():
        low, high = [-0.65, 0.15, -0.2, -1.5, -0.15], [-0.15, 0.45, 0.1, -0.9, 0.15]
        return rng.uniform(low, high).tolist()

    points = [(0.0, HOME * 2)]
    for _ in range(count):
        place = arm() + arm()
        points += [(1.2, place), (0.3, place)]
    return points
