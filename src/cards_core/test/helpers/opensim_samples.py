"""OpenSim models of our own making, as text: an arm, a knee, a shoulder."""

from __future__ import annotations

THELEN = "Thelen2003Muscle"
MILLARD = "Millard2012EquilibriumMuscle"
DE_GROOTE = "DeGrooteFregly2016Muscle"


def document(bodies, joints, forces="", constraints="", *, version=40000, name="sample"):
    """Return a document of format 4."""
    return f"""<?xml version="1.0" encoding="UTF-8"?>
<OpenSimDocument Version="{version}">
  <Model name="{name}">
    <Ground name="ground"/>
    <gravity>0 -9.80665 0</gravity>
    <BodySet><objects>{bodies}</objects></BodySet>
    <JointSet><objects>{joints}</objects></JointSet>
    <ConstraintSet><objects>{constraints}</objects></ConstraintSet>
    <ForceSet><objects>{forces}</objects></ForceSet>
  </Model>
</OpenSimDocument>
"""


def body(name, mass=2.0, com="0 -0.15 0", *, inertia="0.02 0.004 0.02 0 0 0", wraps=""):
    """Return a body."""
    return f"""
    <Body name="{name}">
      <WrapObjectSet><objects>{wraps}</objects></WrapObjectSet>
      <mass>{mass}</mass><mass_center>{com}</mass_center><inertia>{inertia}</inertia>
    </Body>"""


def frame_path(name):
    """Return the path of a body or of the ground."""
    return "/ground" if name == "ground" else f"/bodyset/{name}"


def coordinate(name, low=-1.0, high=2.0, default=0.0, locked="false"):
    """Return a coordinate."""
    return f"""<Coordinate name="{name}"><default_value>{default}</default_value>
      <range>{low} {high}</range><clamped>true</clamped><locked>{locked}</locked></Coordinate>"""


def joint(kind, name, parent, child, coordinates="", *, at="0 0 0", turn="0 0 0", of="0 0 0",
          inner=""):  # fmt: skip
    """Return a joint."""
    return f"""
    <{kind} name="{name}">
      <socket_parent_frame>{parent}_of_{name}</socket_parent_frame>
      <socket_child_frame>{child}_of_{name}</socket_child_frame>
      <coordinates>{coordinates}</coordinates>
      <frames>
        <PhysicalOffsetFrame name="{parent}_of_{name}">
          <socket_parent>{frame_path(parent)}</socket_parent>
          <translation>{at}</translation><orientation>{turn}</orientation>
        </PhysicalOffsetFrame>
        <PhysicalOffsetFrame name="{child}_of_{name}">
          <socket_parent>{frame_path(child)}</socket_parent>
          <translation>{of}</translation><orientation>0.1 -0.2 0.3</orientation>
        </PhysicalOffsetFrame>
      </frames>
      {inner}
    </{kind}>"""


def transform(**axes):
    """Return a SpatialTransform; each axis is (axis, coordinate, function), else fixed."""
    default = {
        "rotation1": "1 0 0", "rotation2": "0 1 0", "rotation3": "0 0 1",
        "translation1": "1 0 0", "translation2": "0 1 0", "translation3": "0 0 1",
    }  # fmt: skip
    out = []
    for name, direction in default.items():
        axis, used, function = axes.get(name, (direction, "", constant(0)))
        out.append(
            f'<TransformAxis name="{name}"><coordinates>{used}</coordinates><axis>{axis}</axis>'
            f"{function}</TransformAxis>"
        )
    return f"<SpatialTransform>{''.join(out)}</SpatialTransform>"


def constant(value):
    """Return a constant function."""
    return f'<Constant name="function"><value>{value}</value></Constant>'


def linear(slope=1.0, offset=0.0):
    """Return a linear function."""
    return (
        f'<LinearFunction name="function"><coefficients>{slope} {offset}</coefficients>'
        "</LinearFunction>"
    )


def spline(x, y):
    """Return a SimmSpline."""
    return f'<SimmSpline name="function"><x>{x}</x><y>{y}</y></SimmSpline>'


def point(name, where, at):
    """Return a path point."""
    return (
        f'<PathPoint name="{name}"><socket_parent_frame>{frame_path(where)}</socket_parent_frame>'
        f"<location>{at}</location></PathPoint>"
    )


def path_wrap(wrap, low=-1, high=-1):
    """Return a wrap of a path."""
    return (
        f'<PathWrap name="w_{wrap}"><wrap_object>{wrap}</wrap_object><method>hybrid</method>'
        f"<range>{low} {high}</range></PathWrap>"
    )


def muscle(name, points, wraps="", *, kind=THELEN, force=500, fiber=0.1, slack=0.15, pennation=0.1,
           extra=""):  # fmt: skip
    """Return a muscle."""
    return f"""
    <{kind} name="{name}">
      <GeometryPath name="path">
        <PathPointSet><objects>{points}</objects></PathPointSet>
        <PathWrapSet><objects>{wraps}</objects></PathWrapSet>
      </GeometryPath>
      <max_isometric_force>{force}</max_isometric_force>
      <optimal_fiber_length>{fiber}</optimal_fiber_length>
      <tendon_slack_length>{slack}</tendon_slack_length>
      <pennation_angle_at_optimal>{pennation}</pennation_angle_at_optimal>
      {extra}
    </{kind}>"""


def wrap_object(kind, name, at, turn="0 0 0", *, quadrant="all", shape=""):
    """Return a wrap object."""
    return (
        f'<{kind} name="{name}"><active>true</active><xyz_body_rotation>{turn}'
        f"</xyz_body_rotation><translation>{at}</translation><quadrant>{quadrant}</quadrant>"
        f"{shape}</{kind}>"
    )


def arm():
    """Return an arm: a shoulder with an oblique axis, an elbow, five things that pull."""
    cylinder = wrap_object(
        "WrapCylinder", "elbow_pulley", "0.005 -0.295 -0.01", "0.05 0.02 0.1",
        shape="<radius>0.016</radius><length>0.06</length>",
    )  # fmt: skip
    bodies = body("upper_arm", wraps=cylinder) + body("forearm", 1.2, "0 -0.12 0")
    joints = joint(
        "CustomJoint", "shoulder", "ground", "upper_arm", coordinate("elevation", -1.5, 2.5, 0.2),
        at="0 0.8 0.17",
        inner=transform(
            rotation1=("-0.06 0 0.99", "elevation", linear()),
            rotation3=("0.99 0 0.06", "", constant(0.1)),
            translation2=("0 1 0", "", constant(-0.01)),
        ),
    ) + joint("PinJoint", "elbow", "upper_arm", "forearm", coordinate("flexion", 0, 2.2, 0.3),
              at="0.006 -0.29 -0.012")  # fmt: skip
    shape = (
        "<FmaxTendonStrain>0.033</FmaxTendonStrain><FmaxMuscleStrain>0.6</FmaxMuscleStrain>"
        "<KshapeActive>0.5</KshapeActive><KshapePassive>4</KshapePassive><Af>0.3</Af>"
        "<Flen>1.8</Flen><activation_time_constant>0.01</activation_time_constant>"
    )
    forces = (
        muscle(
            "extensor",
            point("e1", "ground", "-0.05 0.8 0.17") + point("e2", "upper_arm", "-0.03 -0.2 -0.01")
            + point("e3", "forearm", "-0.022 0.01 0"),
            path_wrap("elbow_pulley"), force=700, fiber=0.12, slack=0.18, pennation=0.2,
            extra=shape,
        )
        + muscle(
            "flexor",
            point("f1", "upper_arm", "0.02 -0.1 0") + point("f2", "forearm", "0.01 -0.05 0.02"),
            kind=MILLARD, fiber=0.11, slack=0.09,
            extra="<ActiveForceLengthCurve><minimum_value>0</minimum_value>"
            "</ActiveForceLengthCurve><fiber_damping>0.05</fiber_damping>",
        )
        + muscle(
            "short", point("s1", "upper_arm", "0.02 -0.2 0.01")
            + point("s2", "forearm", "0.01 -0.06 0.01"), kind=DE_GROOTE, fiber=0.08, slack=0.06,
            extra="<ignore_tendon_compliance>true</ignore_tendon_compliance>",
        )
        + """<Blankevoort1991Ligament name="band"><GeometryPath name="path"><PathPointSet>
        <objects>"""
        + point("b1", "upper_arm", "0 -0.25 0.01") + point("b2", "forearm", "0 -0.03 0.01")
        + """</objects></PathPointSet></GeometryPath><linear_stiffness>2000</linear_stiffness>
        <slack_length>0.06</slack_length></Blankevoort1991Ligament>
        <CoordinateActuator name="reserve"><coordinate>flexion</coordinate></CoordinateActuator>"""
    )  # fmt: skip
    return document(bodies, joints, forces, name="our_arm")


def knee():
    """Return a thigh, a shank that slides on it, a coupled patella, two special path points."""
    bodies = (
        body("thigh", 8)
        + body("shank", 3)
        + body("patella", 0.1, "0 0 0", inertia="1e-5 1e-5 1e-5 0 0 0")
    )
    joints = (
        joint("BallJoint", "hip", "ground", "thigh",
              coordinate("hip_x", -1, 1, 0.1) + coordinate("hip_y", -1, 1)
              + coordinate("hip_z", -1, 1, -0.2), at="0 1 0")
        + joint(
            "CustomJoint", "knee", "thigh", "shank", coordinate("knee", -2, 0.1, -0.4),
            at="0 -0.4 0",
            inner=transform(
                rotation1=("0 0 1", "knee", linear()), rotation2=("0 1 0", "", constant(0)),
                rotation3=("1 0 0", "", constant(0)),
                translation1=("1 0 0", "knee", spline("-2 -1.2 -0.6 0 0.1",
                                                     "-0.003 0.004 0.002 -0.004 -0.005")),
                translation2=("0 1 0", "knee", spline("-2 -1 0 0.1", "-0.02 -0.01 0 0.001")),
            ),
        )
        + joint("CustomJoint", "patellar", "thigh", "patella", coordinate("patella_angle", -2, 2),
                at="0.03 -0.4 0",
                inner=transform(rotation1=("0 0 1", "patella_angle", linear()),
                                rotation2=("0 1 0", "", constant(0)),
                                rotation3=("1 0 0", "", constant(0))))
    )  # fmt: skip
    constraints = (
        '<CoordinateCouplerConstraint name="c"><coupled_coordinates_function>'
        + linear(0.5, 0.01).replace(' name="function"', "")
        + "</coupled_coordinates_function><independent_coordinate_names>knee"
        "</independent_coordinate_names><dependent_coordinate_name>patella_angle"
        "</dependent_coordinate_name></CoordinateCouplerConstraint>"
    )
    moving = (
        '<MovingPathPoint name="q3"><socket_parent_frame>/bodyset/shank</socket_parent_frame>'
        + "".join(
            f"<socket_{c}_coordinate>/jointset/knee/knee</socket_{c}_coordinate>" for c in "xyz"
        )
        + "<x_location>"
        + spline("-2 -1 0 0.1", "0.02 0.03 0.06 0.065").replace(' name="function"', "")
        + "</x_location><y_location>" + constant(0.02).replace(' name="function"', "")
        + "</y_location><z_location>" + constant(0).replace(' name="function"', "")
        + "</z_location></MovingPathPoint>"
    )  # fmt: skip
    conditional = (
        '<ConditionalPathPoint name="q2"><socket_parent_frame>/bodyset/thigh</socket_parent_frame>'
        "<location>0.03 -0.4 0</location><socket_coordinate>/jointset/knee/knee"
        "</socket_coordinate><range>-2 -1.4</range></ConditionalPathPoint>"
    )
    forces = muscle(
        "extensor", point("q1", "thigh", "0.03 -0.1 0") + conditional + moving, slack=0.2
    ) + muscle(
        "hip_flexor", point("h1", "ground", "0.05 1.1 0") + point("h2", "thigh", "0.02 -0.1 0")
    )
    return document(bodies, joints, forces, constraints, name="knee")


def shoulder():
    """Return a shoulder of three angles with a sphere, an ellipsoid and a torus to wrap over.

    In the manner of shoulders in OpenSim: plane of elevation, elevation, rotation about the
    upper arm. The numbers are ours.
    """
    head = wrap_object(
        "WrapEllipsoid",
        "head",
        "0 0.005 0",
        "0.3 0.2 0.1",
        quadrant="-y",
        shape="<dimensions>0.026 0.021 0.023</dimensions>",
    )
    ball = wrap_object("WrapSphere", "ball", "-0.002 0 0.004", shape="<radius>0.022</radius>")
    ring = wrap_object(
        "WrapTorus",
        "ring",
        "0.01 -0.06 0",
        "1.4708 0.1 0",
        shape="<inner_radius>0.006</inner_radius><outer_radius>0.02</outer_radius>",
    )
    shaft = wrap_object(
        "WrapCylinder",
        "shaft",
        "0 -0.12 0",
        "1.5 0.1 0",
        quadrant="all",
        shape="<radius>0.012</radius><length>0.3</length>",
    )
    bodies = body("humerus", 2.1, wraps=head + ball + ring + shaft)
    joints = joint(
        "CustomJoint", "glenohumeral", "ground", "humerus",
        coordinate("elevation_plane", -1.0, 1.2, 0.1) + coordinate("elevation", 0.1, 2.0, 0.5)
        + coordinate("rotation", -1.0, 1.0, 0.0), at="-0.01 1.2 0.15",
        inner=transform(
            rotation1=("0 1 0", "elevation_plane", linear()),
            rotation2=("-1 0 0.05", "elevation", linear(-1.0, 0.0)),
            rotation3=("0.02 1 0.01", "rotation", linear()),
        ),
    )  # fmt: skip
    forces = (
        muscle("deltoid", point("d1", "ground", "0.01 1.24 0.14")
               + point("d2", "humerus", "0.012 -0.11 0.004"), path_wrap("ball"), slack=0.05)
        + muscle("cuff", point("c1", "ground", "-0.057 1.225 0.105")
                 + point("c2", "humerus", "0.011 -0.01 0.014"), path_wrap("head"), slack=0.03)
        + muscle("biceps", point("b1", "ground", "0.02 1.20 0.13")
                 + point("b2", "humerus", "0.015 -0.2 0.0"), path_wrap("ring"), slack=0.1)
        + muscle("latissimus", point("l1", "ground", "-0.08 1.0 0.05")
                 + point("l2", "humerus", "0.013 -0.09 -0.012"), path_wrap("shaft"), slack=0.12)
    )  # fmt: skip
    return document(bodies, joints, forces, name="shoulder")


def old_arm():
    """Return a pin and a slider in the format before 4.0: joints within bodies, bodies by name."""
    return """<OpenSimDocument Version="30000"><Model name="old">
  <gravity>0 -9.80665 0</gravity>
  <BodySet><objects>
    <Body name="ground"><mass>0</mass><Joint/></Body>
    <Body name="bar"><mass>2</mass><mass_center>0 -0.1 0</mass_center>
      <inertia_xx>0.02</inertia_xx><inertia_yy>0.01</inertia_yy><inertia_zz>0.02</inertia_zz>
      <inertia_xy>0</inertia_xy><inertia_xz>0</inertia_xz><inertia_yz>0</inertia_yz>
      <Joint><PinJoint name="pin"><parent_body>ground</parent_body>
        <location_in_parent>0.1 1 0</location_in_parent>
        <orientation_in_parent>0.2 0.1 0</orientation_in_parent>
        <location>0 0.05 0</location><orientation>0 0 0.3</orientation>
        <CoordinateSet><objects><Coordinate name="angle"><default_value>0.2</default_value>
          <range>-1 1</range></Coordinate></objects></CoordinateSet></PinJoint></Joint>
      <WrapObjectSet><objects/></WrapObjectSet></Body>
  </objects></BodySet>
  <ForceSet><objects><Thelen2003Muscle name="m"><isDisabled>false</isDisabled>
    <GeometryPath><PathPointSet><objects>
      <PathPoint name="a"><location>0 0.5 0</location><body>ground</body></PathPoint>
      <PathPoint name="b"><location>0.05 -0.2 0</location><body>bar</body></PathPoint>
    </objects></PathPointSet></GeometryPath>
    <max_isometric_force>300</max_isometric_force><optimal_fiber_length>0.1</optimal_fiber_length>
    <tendon_slack_length>0.2</tendon_slack_length><pennation_angle_at_optimal>0.15</pennation_angle_at_optimal>
    </Thelen2003Muscle></objects></ForceSet>
</Model></OpenSimDocument>
"""
