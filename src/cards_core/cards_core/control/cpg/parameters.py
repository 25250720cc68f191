"""The parameters of a pattern generator, and its file.

    format: cpg/1
    oscillators: {kind: feedback, frequency: 25.4, amplitude: 273, frequency_gain: 9.98, ...}
    rate_scale: 0.01          # [m/s] of v0 for an output of one
    per_joint: 8              # muscles at every joint of the spine, in the order of the robot
    couplings: [[w, phi], ...]      # one pair for each place of `morphology.places`
    truncate: false           # rows of couplings as NASA's toolkit finds them
    edges: [[target, source, w, phi], ...]  # instead of per_joint and couplings: by muscle
    feedback: {hidden: [[...], ...], output: [[...], ...]}   # a network, see `network`
    goal: {hidden: [[...], ...], output: [[...], ...], tension: 12.2}
    tension: 0.0              # [N] T0
    joint_tensions: [6, 0, ...]     # [N] what the muscles at every joint have more

Keys of ``oscillators`` are the attributes of `OpenLoop` or `Feedback`.
"""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from cards_core.control.cpg.morphology import PER_JOINT_MOST, places, shared_body_couplings
from cards_core.control.cpg.network import Network
from cards_core.control.cpg.oscillators import Couplings, Feedback, OpenLoop
from cards_core.errors import CardsError, DescriptionError, ParameterError
from cards_core.robot.elements import Muscle
from cards_core.typing import Array
from cards_core.yaml_fields import Field, read_yaml

FORMAT = "cpg/1"

FEEDBACK_INPUTS, FEEDBACK_OUTPUTS = 2, 3
"""Length and tension of a muscle; F_omega, F_r, F_theta."""

GOAL_INPUTS = {"world": 4, "heading": 2}
"""Inputs of a network for goals. In the world: directions to the goal and of the heading, x and y
each, as published. Along the heading: cosine and sine of the angle from it to the goal, so that
what is learnt for one goal holds for all at that angle."""

_KINDS = {"open_loop": OpenLoop, "feedback": Feedback}
_KEYS = (
    *("format", "oscillators", "rate_scale", "per_joint", "couplings", "truncate", "edges"),
    *("feedback", "goal", "tension", "joint_tensions"),
)


@dataclass(frozen=True, eq=False)
class PatternParameters:
    """What a pattern generator of a robot is made of.

    Attributes:
        oscillators: Of all muscles.
        rate_scale: v0 for an output of one, [m/s].
        per_joint: Muscles at a joint, where couplings follow from the structure.
        couplings: w and phi [rad] of every place, shape (m(3m + 1)/2, 2); or of every edge.
        truncate: See `shared_body_couplings`.
        edges: Names of target and source of every coupling, if they do not follow from the
            structure.
        feedback: Gives F_omega, F_r, F_theta, from -1 to 1, of the relative elongation and the
            relative tension of a muscle.
        goal: Gives T0 of the muscles at a joint of where the goal is and where the robot heads;
            its number of inputs says how it sees them, see `GOAL_INPUTS`.
        goal_tension: Half of the largest T0 that it gives, [N].
        tension: T0 without a goal, [N].
        joint_tensions: What is added to it for the muscles at every joint, [N]; empty: nothing.

    Raises:
        ParameterError: A network has the wrong size.
    """

    oscillators: OpenLoop | Feedback
    rate_scale: float
    couplings: Array
    per_joint: int = 0
    truncate: bool = False
    edges: tuple[tuple[str, str], ...] = ()
    feedback: Network | None = None
    goal: Network | None = None
    goal_tension: float = 0.0
    tension: float = 0.0
    joint_tensions: tuple[float, ...] = ()

    def __post_init__(self) -> None:
        if self.feedback is not None:
            if not isinstance(self.oscillators, Feedback):
                raise ParameterError(
                    "a feedback network for oscillators of the open loop; expected oscillators of "
                    "the kind feedback"
                )
            _check_size(self.feedback, "feedback", FEEDBACK_INPUTS, FEEDBACK_OUTPUTS)
        if len(self.joint_tensions) not in (0, self.per_joint):
            raise ParameterError(
                f"{len(self.joint_tensions)} tensions of muscles at a joint; expected "
                f"{self.per_joint}"
            )
        if self.goal is not None:
            inputs = self.goal.inputs
            if inputs not in GOAL_INPUTS.values():
                raise ParameterError(
                    f"the goal network has {inputs} inputs; expected 4 (directions to the goal "
                    "and of the heading) or 2 (cosine and sine of the angle between them)"
                )
            _check_size(self.goal, "goal", inputs, self.per_joint)

    @property
    def goal_frame(self) -> str:
        """How the goal network sees goals, a key of `GOAL_INPUTS`; "world" without one."""
        inputs = None if self.goal is None else self.goal.inputs
        return "heading" if inputs == GOAL_INPUTS["heading"] else "world"

    def tensions(self, muscles: int) -> Array:
        """Return T0 of all muscles without a goal, shape (m,), [N].

        Args:
            muscles: m, a multiple of `per_joint` where there are `joint_tensions`.

        Raises:
            ParameterError: It is not.
        """
        if not self.joint_tensions:
            return np.full(muscles, self.tension)
        joints, rest = divmod(muscles, self.per_joint)
        if rest:
            raise ParameterError(
                f"{muscles} muscles; expected a multiple of the {self.per_joint} at a joint"
            )
        return self.tension + np.tile(self.joint_tensions, joints)

    def couple(self, muscles: Sequence[Muscle]) -> Couplings:
        """Return the couplings of the oscillators of muscles.

        Args:
            muscles: In the order of the oscillators.

        Raises:
            ParameterError: They do not fit: other muscles, or another number of them.
        """
        if not self.edges:
            bodies = [muscle.end_links for muscle in muscles]
            return shared_body_couplings(
                bodies, self.per_joint, self.couplings, truncate=self.truncate
            )
        names = [muscle.name for muscle in muscles]
        for edge in self.edges:
            for name in edge:
                if name not in names:
                    raise ParameterError(
                        f"a coupling names muscle '{name}'; expected some of: {', '.join(names)}"
                    )
        index = np.array([[names.index(name) for name in edge] for edge in self.edges])
        return Couplings(index[:, 0], index[:, 1], self.couplings[:, 0], self.couplings[:, 1])


def _check_size(network: Network, name: str, inputs: int, outputs: int) -> None:
    if (network.inputs, network.outputs) != (inputs, outputs):
        raise ParameterError(
            f"the {name} network has {network.inputs} inputs and {network.outputs} outputs; "
            f"expected {inputs} and {outputs}"
        )


def read_parameters(path: str | Path) -> PatternParameters:
    """Read a file of the format that the module states.

    Raises:
        DescriptionError: It cannot be read, or a value is missing or does not fit.
    """
    root = Field((document := read_yaml(path)), (), document.data)
    root.mapping(_KEYS)
    root["format"].text((FORMAT,))
    try:
        return _read(root)
    except DescriptionError:
        raise
    except CardsError as error:
        raise root.error(str(error)) from None


def _read(root: Field) -> PatternParameters:
    section = root["oscillators"]
    kind = section["kind"].text(_KINDS)
    fields = [item.name for item in dataclasses.fields(_KINDS[kind])]
    given = [key for key in section.mapping(("kind", *fields)) if key != "kind"]
    for name in ("frequency", "amplitude"):
        section[name]
    oscillators = _KINDS[kind](**{key: section[key].number() for key in given})
    explicit = root.has("edges")
    if explicit and (root.has("couplings") or root.has("truncate")):
        raise root.error("has edges and couplings", "one of the two")
    edges: list[tuple[str, str]] = []
    pairs: list[Array] = []
    per_joint = 0
    if root.has("per_joint") or not explicit:
        per_joint = root["per_joint"].whole(at_least=1, at_most=PER_JOINT_MOST)
    if explicit:
        for item in root["edges"].items(at_least=0):
            values = item.items()
            if len(values) != 4:
                raise item.error(f"has {len(values)} elements", "target, source, weight, phase")
            edges.append((values[0].text(), values[1].text()))
            pairs.append(np.array([values[2].number(), values[3].number()]))
    else:
        rows = root["couplings"]
        pairs = [item.vector(2, "weight, phase") for item in rows.items()]
        if len(pairs) != len(places(per_joint)):
            raise rows.error(
                f"has {len(pairs)} pairs", f"{len(places(per_joint))} for {per_joint} muscles"
            )
    goal = root["goal"] if root.has("goal") else None
    return PatternParameters(
        oscillators,
        root["rate_scale"].number(above=0.0),
        np.array(pairs).reshape(-1, 2),
        per_joint=per_joint,
        truncate=root["truncate"].flag() if root.has("truncate") else False,
        edges=tuple(edges),
        feedback=_network(root["feedback"], ()) if root.has("feedback") else None,
        goal=None if goal is None else _network(goal, ("tension",)),
        goal_tension=0.0 if goal is None else goal["tension"].number(at_least=0.0),
        tension=root["tension"].number(at_least=0.0) if root.has("tension") else 0.0,
        joint_tensions=_joint_tensions(root) if root.has("joint_tensions") else (),
    )


def _joint_tensions(root: Field) -> tuple[float, ...]:
    if not root.has("per_joint"):
        raise root["joint_tensions"].error("without equal joints", "the key 'per_joint'")
    return tuple(item.number(at_least=0.0) for item in root["joint_tensions"].items())


def _network(section: Field, more: tuple[str, ...]) -> Network:
    section.mapping(("hidden", "output", *more))
    layers = []
    for name in ("hidden", "output"):
        rows = [row.vector() for row in section[name].items()]
        if len({row.size for row in rows}) > 1:
            raise section[name].error("has rows of different lengths", "equal ones")
        layers.append(np.array(rows))
    return Network(*layers)


def write_parameters(parameters: PatternParameters, path: str | Path) -> None:
    """Write a file that `read_parameters` reads back to the same numbers.

    Raises:
        OSError: The file cannot be written.
    """
    Path(path).write_text(as_text(parameters), encoding="utf-8")


def as_text(parameters: PatternParameters) -> str:
    """Return what `write_parameters` writes."""
    p = parameters
    kind = "open_loop" if isinstance(p.oscillators, OpenLoop) else "feedback"
    data: dict[str, Any] = {
        "format": FORMAT,
        "oscillators": {"kind": kind, **dataclasses.asdict(p.oscillators)},
        "rate_scale": p.rate_scale,
        "tension": p.tension,
    }
    if p.joint_tensions:
        data["joint_tensions"] = list(p.joint_tensions)
    if p.per_joint:
        data["per_joint"] = p.per_joint
    if p.edges:
        data["edges"] = [
            [*names, *row] for names, row in zip(p.edges, p.couplings.tolist(), strict=True)
        ]
    else:
        data |= {"truncate": p.truncate, "couplings": p.couplings.tolist()}
    for name, network in (("feedback", p.feedback), ("goal", p.goal)):
        if network is not None:
            data[name] = {
                "hidden": network.hidden.tolist(),
                "output": network.output.tolist(),
            }
    if p.goal is not None:
        data["goal"]["tension"] = p.goal_tension
    # JSON is YAML, and writes floats so that they come back the same
    lines = [f"{key}: {json.dumps(value)}" for key, value in data.items()]
    return "\n".join(lines) + "\n"
