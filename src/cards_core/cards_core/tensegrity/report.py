"""What was built, as data for JSON."""

from __future__ import annotations

from typing import Any

from cards_core.tensegrity.structure import Anchor, Cable, Structure


def describe(structure: Structure) -> dict[str, Any]:
    """Return bodies, masses, cables and rest lengths; lengths in m, masses in kg, tensions in N."""
    return {
        "name": structure.name,
        "source": structure.source,
        "mass": structure.mass,
        "center_of_mass": structure.center_of_mass.tolist(),
        "degrees_of_freedom": 6 * len(structure.bodies),
        "bodies": [
            {
                "name": body.name,
                "mass": body.mass,
                "position": body.position.tolist(),
                "inertia": body.inertia.tensor.tolist(),
                "solids": len(body.solids),
                "point_masses": len(body.point_masses),
            }
            for body in structure.bodies
        ],
        "cables": [_cable(cable) for cable in structure.cables],
        "nodes": {name: place.tolist() for name, place in structure.nodes.items()},
        "notes": list(structure.notes),
    }


def _cable(cable: Cable) -> dict[str, Any]:
    return {
        "index": cable.index,
        "name": cable.name,
        "tags": list(cable.tags),
        "ends": [_end(cable.first), _end(cable.second)],
        "node_distance": cable.node_distance,
        "length": cable.length,
        "rest_length": cable.rest_length,
        "pretension": cable.pretension,
        "stiffness": cable.stiffness,
        "damping": cable.damping,
        "tension_max": cable.tension_max,
        "actuator": None if cable.actuator is None else cable.actuator.type,
        "speed_max": None if cable.actuator is None else cable.actuator.speed_max,
        "contact": cable.contact,
        "min_length": cable.min_length,
        "min_rest_length": cable.min_rest_length,
    }


def _end(anchor: Anchor) -> dict[str, Any]:
    return {"body": anchor.body, "node": anchor.node, "position": anchor.position.tolist()}
