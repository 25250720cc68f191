"""OpenSim's numbers of a model's muscles; runs in a process of its own.

The package ``opensim`` brings libraries (a casadi) that cannot live beside ours in one process,
and needs Pythons that need not be ours. So this file imports nothing of CARDS and is a script,
``python opensim_side.py JOB.json RESULT.json``.
"""

from __future__ import annotations

import json
import sys
from typing import Any

PLAIN = ("Blankevoort1991Ligament", "PathActuator", "PathSpring")
"""What has no fibres."""


def evaluate(job: dict[str, Any]) -> dict[str, Any]:
    """Return what OpenSim says of a model.

    Args:
        job: ``file``; ``muscles``: name to kind; ``crossed``: muscle to the free coordinates that
            move it; ``poses``: free coordinates that differ from the defaults, and all unlocked
            coordinates [rad] or [m]; ``activations``.

    Returns:
        ``poses``: for each, by muscle, ``length`` [m], ``arms`` by coordinate [m], and ``fibers``
        by activation: fibre length [m], active and passive force [N], or None at OpenSim's lower
        limit; of ligaments ``tension`` [N]. Or ``error``.
    """
    try:
        import opensim  # type: ignore[import-not-found]  # only where it is asked for
    except ImportError as error:
        return {"missing": str(error)}
    opensim.Logger.setLevelString("Off")
    try:
        return {"poses": _Model(opensim, job).poses()}
    except RuntimeError as error:
        return {"error": str(error).strip().splitlines()[0]}


class _Model:
    def __init__(self, opensim: Any, job: dict[str, Any]) -> None:
        self.opensim, self.job = opensim, job
        self.model = opensim.Model(job["file"])
        self.state = self.model.initSystem()
        self.coordinates = self.model.getCoordinateSet()
        self.forces, self.paths = {}, {}
        for name, kind in job["muscles"].items():
            force = self.model.getForceSet().get(name)
            if kind in PLAIN:
                force = getattr(opensim, kind).safeDownCast(force)
                path = force.get_path()
            else:
                force = opensim.Muscle.safeDownCast(force)
                path = force.getPath()
            self.forces[name] = force
            self.paths[name] = opensim.GeometryPath.safeDownCast(path)

    def poses(self) -> list[dict[str, Any]]:
        return [self.pose(*pose) for pose in self.job["poses"]]

    def pose(self, free: list[str], values: dict[str, float]) -> dict[str, Any]:
        for name, value in values.items():
            # coupled coordinates are set too: OpenSim's own assembly is less exact
            self.coordinates.get(name).setValue(self.state, value, False)
            self.coordinates.get(name).setSpeedValue(self.state, 0.0)
        self.model.realizeVelocity(self.state)
        moved = set(free)
        return {name: self.muscle(name, kind, moved) for name, kind in self.job["muscles"].items()}

    def muscle(self, name: str, kind: str, moved: set[str]) -> dict[str, Any]:
        path = self.paths[name]
        crossed = self.job["crossed"][name]
        out: dict[str, Any] = {"length": path.getLength(self.state), "arms": {}}
        if moved and not moved & set(crossed):
            return out  # as in the default pose
        out["arms"] = {
            n: path.computeMomentArm(self.state, self.coordinates.get(n)) for n in crossed
        }
        if kind in PLAIN:
            self.model.realizeDynamics(self.state)
            pull = {"PathSpring": "getTension", "Blankevoort1991Ligament": "getTotalForce"}
            if kind in pull:
                out["tension"] = getattr(self.forces[name], pull[kind])(self.state)
        else:
            out["fibers"] = [self.fiber(name, a) for a in self.job["activations"]]
        return out

    def fiber(self, name: str, activation: float) -> list[float] | None:
        muscle = self.forces[name]
        muscle.setActivation(self.state, activation)
        try:
            muscle.computeEquilibrium(self.state)
            self.model.realizeDynamics(self.state)
            fiber = muscle.getFiberLength(self.state)
            active = muscle.getActiveFiberForce(self.state)
            passive = muscle.getPassiveFiberForce(self.state)
            speed = muscle.getNormalizedFiberVelocity(self.state)
        except RuntimeError:
            return None
        if fiber <= 1.0001 * self.shortest(muscle) or abs(speed) > 1e-6:
            return None
        return [fiber, active, passive]

    def shortest(self, muscle: Any) -> float:
        for kind in ("Thelen2003Muscle", "Millard2012EquilibriumMuscle"):
            own = getattr(self.opensim, kind).safeDownCast(muscle)
            if own is not None:
                return float(own.getMinimumFiberLength())
        return 0.2 * float(muscle.getOptimalFiberLength())


def main() -> None:
    """Read a job, write the result."""
    with open(sys.argv[1], encoding="utf-8") as file:
        job = json.load(file)
    result = evaluate(job)
    with open(sys.argv[2], "w", encoding="utf-8") as file:
        json.dump(result, file)


if __name__ == "__main__":
    main()
