"""Parameters of muscle relaxation control, and body images by their names."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from cards_core.body_image.geometric import GeometricBodyImage
from cards_core.body_image.interface import BodyImage
from cards_core.body_image.learned import LearnedBodyImage
from cards_core.body_image.polynomial import PolynomialBodyImage
from cards_core.control.mrc.joint_angles import JOINT_ANGLES, noise_parameters
from cards_core.control.mrc.relaxation import TIES, RelaxationOptions
from cards_core.control.mrc.temperature_safety import TemperatureLimits
from cards_core.errors import ParameterError
from cards_core.muscles.actuators.springs import Elongations
from cards_core.parameters.declaration import Parameter
from cards_core.robot.model import Robot

IMAGES: Mapping[str, Callable[[Robot], BodyImage]] = {
    "geometric": GeometricBodyImage,
    "polynomial": lambda robot: PolynomialBodyImage.fitted(GeometricBodyImage(robot)),
    "learned": lambda robot: LearnedBodyImage(GeometricBodyImage(robot)),
}
"""Body images by the value of the parameter ``body_image``."""


def made_image(robot: Robot, kind: str, file: str) -> BodyImage:
    """Return a body image. Raises `ParameterError` or `CardsError` if the file does not fit.

    Args:
        robot: The robot.
        kind: Name of a body image, key of `IMAGES`.
        file: File that a learned image is loaded from; empty: none.
    """
    sprung = Elongations(robot.muscles).rows
    if kind == "polynomial" and sprung:
        raise ParameterError(
            f"body_image is 'polynomial', and muscle '{robot.muscles[sprung[0]].name}' has a "
            "spring (expected: 'geometric', which includes the spring, or 'learned')"
        )
    image = IMAGES[kind](robot)
    if file:
        if not isinstance(image, LearnedBodyImage):
            raise ParameterError(
                f"body_image_file is '{file}' with body_image '{kind}' (expected: 'learned', the "
                "only one that is saved)"
            )
        image.load(file)
    return image


def _length(name: str, default: float, text: str) -> Parameter:
    return Parameter(name, default, text, "m", lower=1e-9, upper=0.1, live=True)


def mrc_parameters() -> list[Parameter]:
    """Return the parameters of the controller."""
    o, s = RelaxationOptions(), TemperatureLimits()
    return [
        Parameter("relaxation", True, "Muscles are released at rest.", live=True),
        _length("dl_plus", o.dl_plus, "Length released per muscle and period at rest."),
        _length("dl_minus", o.dl_minus, "Length withdrawn per muscle and period in motion."),
        _length("dl_max", o.dl_max, "Maximum released length of a muscle."),
        Parameter(
            "dtheta_max",
            o.dtheta_max,
            "Motion since the targets came to rest beyond which release stops.",
            "rad or m",
            lower=1e-6,
            live=True,
        ),
        Parameter(
            "resume",
            0.9,
            "Fraction of dtheta_max below which release resumes.",
            lower=1e-3,
            upper=1.0,
        ),
        Parameter(
            "hold",
            0.1,
            "Time for which targets must be at rest before release starts.",
            "s",
            lower=0.0,
            upper=60.0,
        ),
        Parameter("ties", "tension", "Order of muscles that are equally needed.", choices=TIES),
        Parameter("tension_min", o.tension_min, "T_min of every muscle.", "N", lower=1e-3),
        Parameter("bias", 10.0, "T0 of every muscle.", "N", lower=0.0),
        Parameter("rate", 1.0 / o.period, "Rate of the relaxation.", "Hz", lower=1.0, upper=1e4),
        Parameter(
            "estimation_rate",
            40.0,
            "Rate of the model and the necessary tensions.",
            "Hz",
            lower=1.0,
            upper=1e4,
        ),
        Parameter(
            "body_image",
            "geometric",
            "Model of the muscle lengths.",
            choices=tuple(IMAGES),
        ),
        Parameter("body_image_file", "", "File of a learned body image to start from."),
        Parameter("learning", False, "A learned body image learns while it runs.", live=True),
        Parameter(
            "force_ramp",
            1.5,
            "Time in which a commanded force is reached.",
            "s",
            lower=0.0,
            upper=60.0,
        ),
        Parameter(
            "force_max", 200.0, "Maximum force that is accepted.", "N", above=0.0, upper=1e5
        ),
        Parameter(
            "moment_max", 50.0, "Maximum moment that is accepted.", "Nm", above=0.0, upper=1e5
        ),
        Parameter(
            "joint_angles",
            "measured",
            "Source of the pose: joint_states, or muscle lengths alone.",
            choices=JOINT_ANGLES,
        ),
        *noise_parameters(),
        Parameter(
            "soft_temperature", s.soft, "Tensions are reduced above this temperature.", "degC"
        ),
        Parameter(
            "hard_temperature", s.hard, "All muscles are relaxed above this temperature.", "degC"
        ),
        Parameter(
            "heat_rate",
            s.heat_rate,
            "Rate at which muscles lengthen near the hard temperature.",
            "m/s",
            above=0.0,
            upper=1.0,
        ),
    ]
