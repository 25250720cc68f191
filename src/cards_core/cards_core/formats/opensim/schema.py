"""Which properties an object of an OpenSim document may have.

The classes that are read are closed: a property is read, or it is one that OpenSim (4.6, or an
older version of the format) has and that has no meaning for lengths, masses and forces here.
Anything else is a mistake in the file; OpenSim reads over it, and its default counts there.
The names are those of OpenSim 4.6's ``getPropertyByIndex`` and of models of versions 2 to 4.
"""

from __future__ import annotations

from collections.abc import Mapping
from difflib import get_close_matches

from cards_core.formats.sdf.schema import Content, check_content
from cards_core.formats.sdf.values import known_names
from cards_core.formats.xml_lines import XmlElement, shorten

OLDEST, NEWEST = 20000, 40600
"""Versions of the document's format that are read: from OpenSim 2 to 4.6."""


def _words(text: str) -> frozenset[str]:
    return frozenset(text.split())


def _content(
    once: str = "", many: str = "", ignored: str = "", refused: Mapping[str, str] | None = None
) -> Content:
    # OpenSim reads over stray letters between properties, and a published model has one
    return Content(
        _words(once), _words(many), _words(ignored), refused or {}, _words("name"), text=True
    )


_DRAWN = "frame_geometry attached_geometry FrameGeometry VisibleObject Appearance"
_FUNCTIONS = (
    "Constant LinearFunction SimmSpline NaturalCubicSpline PiecewiseLinearFunction "
    "PolynomialFunction MultiplierFunction"
)
_SET = _content("objects", ignored="components groups datafile")
_CONNECTORS = dict.fromkeys(
    ("connectors", "location_in_child", "orientation_in_child"),
    "belongs to development versions between 3 and 4, which are not read",
)
_JOINT = (
    "socket_parent_frame socket_child_frame connector_parent_frame connector_child_frame "
    "coordinates frames parent_body location_in_parent orientation_in_parent location orientation "
    "CoordinateSet reverse"
)
_PLAIN_JOINT = _content(_JOINT, ignored="components use_euler_angles", refused=_CONNECTORS)
_WRAP = "active xyz_body_rotation translation quadrant"
_WRAP_DRAWN = "components VisibleObject display_preference color Appearance"
_POINT = "socket_parent_frame connector_parent_frame_name body"
_FORCE = "appliesForce isDisabled GeometryPath path"
_MUSCLE = (
    f"{_FORCE} max_isometric_force optimal_fiber_length tendon_slack_length "
    "pennation_angle_at_optimal pennation_angle max_contraction_velocity "
    "ignore_tendon_compliance ignore_activation_dynamics activation_time_constant "
    "deactivation_time_constant minimum_activation"
)
_CONTROL = (
    "components min_control max_control optimal_force default_activation default_fiber_length "
    "maximum_pennation_angle"
)
_THELEN = "FmaxTendonStrain FmaxMuscleStrain KshapeActive KshapePassive Af Flen"
_DAMPED = "active_force_width_scale fiber_damping ignore_passive_fiber_force"
_SCALAR = "optimal_force min_control max_control"
_POINTS = _content("x y")

CONTENT: Mapping[str, Content] = {
    "Model": _content(
        "Ground gravity BodySet JointSet ForceSet ConstraintSet ControllerSet ContactGeometrySet "
        "ProbeSet ComponentSet components defaults",
        ignored="assembly_accuracy credits publications length_units force_units MarkerSet "
        "ModelVisualPreferences FrameSet",
    ),
    "Ground": _content("components WrapObjectSet", ignored=_DRAWN),
    "Body": _content(
        "components WrapObjectSet mass mass_center inertia inertia_xx inertia_yy inertia_zz "
        "inertia_xy inertia_xz inertia_yz Joint",
        ignored=_DRAWN,
    ),
    "PhysicalOffsetFrame": _content(
        "socket_parent socket_parent_frame translation orientation WrapObjectSet",
        ignored=f"components {_DRAWN}",
    ),
    "Coordinate": _content(
        "default_value range locked prescribed",
        ignored="components default_speed_value clamped prescribed_function motion_type "
        "initial_value is_free_to_satisfy_constraints",
    ),
    **dict.fromkeys(
        (
            "WeldJoint", "PinJoint", "SliderJoint", "UniversalJoint", "GimbalJoint", "BallJoint",
            "PlanarJoint", "FreeJoint",
        ),
        _PLAIN_JOINT,
    ),
    "CustomJoint": _content(
        f"{_JOINT} SpatialTransform", ignored="components use_euler_angles", refused=_CONNECTORS
    ),
    "SpatialTransform": _content(many="TransformAxis"),
    "TransformAxis": _content(f"coordinates axis function {_FUNCTIONS}"),
    "Constant": _content("value"),
    "LinearFunction": _content("coefficients"),
    "PolynomialFunction": _content("coefficients"),
    "SimmSpline": _POINTS,
    "NaturalCubicSpline": _POINTS,
    "PiecewiseLinearFunction": _POINTS,
    "MultiplierFunction": _content(f"scale function {_FUNCTIONS}"),
    "WrapSphere": _content(f"{_WRAP} radius", ignored=_WRAP_DRAWN),
    "WrapCylinder": _content(f"{_WRAP} radius length", ignored=_WRAP_DRAWN),
    "WrapEllipsoid": _content(f"{_WRAP} dimensions", ignored=_WRAP_DRAWN),
    "WrapTorus": _content(f"{_WRAP} inner_radius outer_radius", ignored=_WRAP_DRAWN),
    "GeometryPath": _content(
        "PathPointSet PathWrapSet", ignored="components VisibleObject default_color Appearance"
    ),
    "PathWrap": _content("wrap_object range", ignored="components method"),
    "PathPoint": _content(f"{_POINT} location", ignored="components VisibleObject"),
    "ConditionalPathPoint": _content(
        f"{_POINT} location socket_coordinate coordinate range", ignored="components VisibleObject"
    ),
    "MovingPathPoint": _content(
        f"{_POINT} socket_x_coordinate socket_y_coordinate socket_z_coordinate x_coordinate "
        "y_coordinate z_coordinate x_location y_location z_location",
        ignored="components VisibleObject location",
    ),
    "Thelen2003Muscle": _content(
        f"{_MUSCLE} {_THELEN}",
        ignored=f"{_CONTROL} fv_linear_extrap_threshold Vmax Vmax0 damping",
    ),
    **dict.fromkeys(("Millard2012EquilibriumMuscle", "Millard2012AccelerationMuscle"), _content(
        f"{_MUSCLE} fiber_damping ActiveForceLengthCurve ForceVelocityCurve FiberForceLengthCurve "
        "TendonForceLengthCurve",
        # of OpenSim 3; Thelen's numbers stand in models that were changed from one to the other
        ignored=f"{_CONTROL} {_THELEN} MuscleFirstOrderActivationDynamicModel "
        "MuscleSecondOrderActivationDynamicModel ForceVelocityInverseCurve fatigue_factor "
        "recovery_factor default_fiber_velocity mass FiberCompressiveForceLengthCurve "
        "FiberCompressiveForceCosPennationCurve tendon_force_length_damping "
        "fiber_compressive_force_length_damping fiber_force_length_damping "
        "fiber_compressive_force_cos_pennation_damping",
    )),
    "DeGrooteFregly2016Muscle": _content(
        f"{_MUSCLE} {_DAMPED} passive_fiber_strain_at_one_norm_force "
        "tendon_strain_at_one_norm_force",
        ignored=f"{_CONTROL} default_normalized_tendon_force tendon_compliance_dynamics_mode "
        "activation_dynamics_smoothing",
    ),
    "MeyerFregly2016Muscle": _content(
        f"{_MUSCLE} {_DAMPED}", ignored=f"{_CONTROL} activation_dynamics_smoothing"
    ),
    "Thelen2003Muscle_Deprecated": _content(
        f"{_MUSCLE} {_THELEN} Vmax", ignored=f"{_CONTROL} Vmax0 damping"
    ),
    **dict.fromkeys(
        (
            "Delp1990Muscle", "Delp1990Muscle_Deprecated", "RigidTendonMuscle",
            "Schutte1993Muscle", "Schutte1993Muscle_Deprecated",
        ),
        _content(  # its curves are functions
            f"{_MUSCLE} time_scale",
            ignored=f"{_CONTROL} {_FUNCTIONS} tendon_force_length_curve activation1 activation2 "
            "active_force_length_curve passive_force_length_curve force_velocity_curve damping "
            "mass",
        ),
    ),
    "PathActuator": _content(f"{_FORCE} {_SCALAR}", ignored="components"),
    "PathSpring": _content(
        f"{_FORCE} resting_length stiffness dissipation", ignored="components"
    ),
    **dict.fromkeys(("CoordinateActuator", "ActivationCoordinateActuator"), _content(
        f"appliesForce isDisabled coordinate {_SCALAR}",
        ignored="components activation_time_constant default_activation",
    )),
    "Blankevoort1991Ligament": _content(
        f"{_FORCE} linear_stiffness transition_strain damping_coefficient slack_length",
        ignored="components",
    ),
    "ActiveForceLengthCurve": _content(
        "min_norm_active_fiber_length transition_norm_fiber_length max_norm_active_fiber_length "
        "shallow_ascending_slope minimum_value"
    ),
    "ForceVelocityCurve": _content(
        "concentric_slope_at_vmax concentric_slope_near_vmax isometric_slope "
        "eccentric_slope_at_vmax eccentric_slope_near_vmax "
        "max_eccentric_velocity_force_multiplier concentric_curviness eccentric_curviness"
    ),
    "FiberForceLengthCurve": _content(
        "strain_at_zero_force strain_at_one_norm_force stiffness_at_low_force "
        "stiffness_at_one_norm_force curviness"
    ),
    "TendonForceLengthCurve": _content(
        "strain_at_one_norm_force stiffness_at_one_norm_force norm_force_at_toe_end curviness"
    ),
    "CoordinateCouplerConstraint": _content(
        "isDisabled isEnforced coupled_coordinates_function independent_coordinate_names "
        "dependent_coordinate_name scale_factor",
        ignored="components",
    ),
    **dict.fromkeys(
        (
            "BodySet", "JointSet", "ForceSet", "ConstraintSet", "ControllerSet", "ComponentSet",
            "ContactGeometrySet", "ProbeSet", "CoordinateSet", "WrapObjectSet", "PathPointSet",
            "PathWrapSet",
        ),
        _SET,
    ),
}  # fmt: skip
"""Content of every class that is read."""

HOLDERS: Mapping[str, frozenset[str]] = {
    "objects": frozenset(),
    "components": frozenset(),
    "Joint": frozenset(),
    "path": frozenset(),
    "function": frozenset(),
    "coupled_coordinates_function": frozenset(),
    "x_location": frozenset(),
    "y_location": frozenset(),
    "z_location": frozenset(),
    "frames": frozenset(["PhysicalOffsetFrame"]),
    "coordinates": frozenset(["Coordinate"]),
    "CoordinateSet": frozenset(["Coordinate"]),
    "PathWrapSet": frozenset(["PathWrap"]),
}
"""Properties and sets that hold objects, and of which classes: empty where the reader says so."""

FORCES = _words(
    "ActivationCoordinateActuator Blankevoort1991Ligament BodyActuator BodyDragForce "
    "BushingForce ClutchedPathSpring ControllableSpring CoordinateActuator "
    "CoordinateLimitForce DeGrooteFregly2016Muscle Delp1990Muscle Delp1990Muscle_Deprecated "
    "ElasticFoundationForce ExponentialContactForce ExpressionBasedBushingForce "
    "ExpressionBasedCoordinateForce ExpressionBasedPathForce "
    "ExpressionBasedPointToPointForce ExternalForce FunctionBasedBushingForce "
    "HuntCrossleyForce Ligament McKibbenActuator MeyerFregly2016Force MeyerFregly2016Muscle "
    "Millard2012AccelerationMuscle Millard2012EquilibriumMuscle PathActuator PathSpring "
    "PistonActuator PointActuator PointToPointActuator PointToPointSpring PrescribedForce "
    "RigidTendonMuscle Schutte1993Muscle Schutte1993Muscle_Deprecated "
    "SmoothSphereHalfSpaceForce SpringGeneralizedForce Thelen2003Muscle "
    "Thelen2003Muscle_Deprecated TorqueActuator"
)
"""Forces of OpenSim. Plug-ins bring others; one that is called almost like one of these is not."""

_CLOSE = 0.85  # similarity from which an unknown force is taken for a misspelt one
_TEXT = Content(text=True)


def version_of(root: XmlElement) -> int:
    """Return the version of a document's format.

    Raises:
        DescriptionError: No number, or a version that is not read.
    """
    text = (root.get("Version") or "").strip()
    expected = f"{OLDEST} to {NEWEST}, from OpenSim 2 to 4.6"
    if not text.isascii() or not text.isdigit() or len(text) > 9:
        raise root.error(f"version '{shorten(text)}' is no number", expected)
    version = int(text)
    if version < OLDEST:
        raise root.error(f"version {version} is too old", expected)
    if version > NEWEST:
        raise root.error(f"version {version} is not known yet", expected)
    return version


def check_document(root: XmlElement) -> None:
    """Check the properties of all objects that are read.

    Args:
        root: ``<OpenSimDocument>``.

    Raises:
        DescriptionError: A property that its class does not have, or one that is given twice.
    """
    for name in root.attrib:
        if name != "Version":
            raise root.error(f"unknown attribute '{shorten(name)}'", "Version")
    models = list(root.children("Model"))
    if len(models) != 1:
        raise root.error(f"{len(models)} elements <Model>", "one")
    waiting = models
    while waiting:
        element = waiting.pop()
        if element.tag in CONTENT:
            content = CONTENT[element.tag]
            check_content(element, content)
            waiting += [c for c in element if c.tag in content.once | content.many]
        elif element.tag == "defaults" or _holds(element):
            waiting += [child for child in element if child.tag in CONTENT]
        else:
            check_content(element, _TEXT)
        _check_classes(element)


def check_force(element: XmlElement) -> None:
    """Refuse a force whose class looks like a misspelt one of OpenSim.

    Raises:
        DescriptionError: It does.
    """
    tag = element.tag
    if tag in FORCES or len(tag) > 80:
        return
    close = get_close_matches(tag, FORCES, n=1, cutoff=_CLOSE)
    if close:
        raise element.error(
            f"unknown force <{tag}>; did you mean <{close[0]}>?", "a force that OpenSim has"
        )


def _holds(element: XmlElement) -> bool:
    """Whether an element holds objects; ``coordinates`` of an axis are names."""
    above = element.parent
    named = element.tag == "coordinates" and above is not None and above.tag == "TransformAxis"
    return element.tag in HOLDERS and not named


def _check_classes(element: XmlElement) -> None:
    classes = HOLDERS.get(element.tag, frozenset()) if _holds(element) else frozenset()
    holder = element if element.tag not in CONTENT else element.child("objects")
    for child in holder if classes and holder is not None else ():
        if child.tag not in classes:
            close = get_close_matches(child.tag[:80], classes, n=1)
            hint = f"; did you mean <{close[0]}>?" if close else ""
            raise child.error(
                f"unknown element <{shorten(child.tag)}>{hint}", known_names(classes)
            )
