"""What was built, as data for JSON."""

from __future__ import annotations

import dataclasses
from typing import Any

from cards_core.tensegrity.structure import Anchor, Cable, Solid, Structure


def describe(structure: Structure) -> dict[str, Any]:
    """Return bodies, masses, cables and rest lengths, in SI units."""
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
                "solids": [_solid(solid) for solid in body.solids],
                "point_masses": [mass for _, mass in body.point_masses],
            }
            for body in structure.bodies
        ],
        "cables": [_cable(cable) for cable in structure.cables],
        "nodes": {name: place.tolist() for name, place in structure.nodes.items()},
        "notes": list(structure.notes),
    }


def _solid(solid: Solid) -> dict[str, Any]:
    return {
        "name": solid.name,
        "kind": type(solid.geometry).__name__.lower(),
        "tags": list(solid.tags),
        "mass": solid.mass,
        "friction": solid.friction,
        "roll_friction": solid.roll_friction,
        "restitution": solid.restitution,
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
        "actuator": None if cable.actuator is None else dataclasses.asdict(cable.actuator),
        "contact": cable.contact,
        "friction": cable.friction,
        "min_length": cable.min_length,
        "min_rest_length": cable.min_rest_length,
    }


def _end(anchor: Anchor) -> dict[str, Any]:
    return {"body": anchor.body, "node": anchor.node, "position": anchor.position.tolist()}
