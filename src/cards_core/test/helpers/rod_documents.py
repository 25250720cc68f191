"""A small rod robot as text: three limbs whose joints the tests choose."""

from cards_core.rods.robots.reader import read_rod_robot

LINK = (
    "<inertial><mass>0.01</mass><inertia><ixx>1e-5</ixx><iyy>1e-5</iyy><izz>1e-5</izz></inertia>"
)
LINK += "</inertial>"

YAML = """defaults:
  radius: 0.001
  E: 200.0e+9
  G: 80.0e+9
  rho: 8000
  base: extensible
  length: 0.5
  limits: [0.1, 1.0]
rods:
  - {name: a}
  - {name: b}
  - {name: c}
controlled_dof: [z, rx, ry]
"""


def joint(name, kind, parent, child, *axes):
    """A ``<joint>`` at the origin of its child."""
    tags = zip(("axis", "axis2"), axes, strict=False)
    text = "".join(f"<{tag}><xyz>{axis}</xyz></{tag}>" for tag, axis in tags)
    return (
        f'<joint name="{name}" type="{kind}"><parent>{parent}</parent><child>{child}</child>'
        f"{text}</joint>"
    )


def chain(name, joints, where):
    """Bodies and joints in a row from the plate to the body ``<name>_end``.

    Args:
        name: Limb.
        joints: Kind, axis and optionally second axis of each.
        where: Pose of all of them in the plate's frame.
    """
    text, parent = "", "plate"
    for k, item in enumerate(joints):
        child = f"{name}_end" if k == len(joints) - 1 else f"{name}_{k}"
        text += f'<link name="{child}"><pose relative_to="plate">{where}</pose>{LINK}</link>'
        text += joint(f"{name}_joint_{k}", item[0], parent, child, *item[1:])
        parent = child
    return text


def sdf(tip=(("revolute", "0 0 1"),), extra="", plate_pose="0 0 0.5 0 0 0", mass=True):
    """Three limbs at 120 deg; ``tip`` are the joints between plate and rod."""
    points = {"a": (0.1, 0.0), "b": (-0.05, 0.0866), "c": (-0.05, -0.0866)}
    body = f'<link name="base">{LINK}</link>' + joint("fix", "fixed", "world", "base")
    inertial = LINK if mass else ""
    body += f'<link name="plate"><pose>{plate_pose}</pose>{inertial}</link>'
    for name, (x, y) in points.items():
        body += (
            f'<frame name="{name}_start" attached_to="base"><pose>{x} {y} 0 0 0 0</pose></frame>'
        )
        body += chain(name, tip, f"{x} {y} 0 0 0 0")
        end = f"{name}_end" if tip else "plate"
        at = "0 0 -0.02 0 0 0" if tip else f"{x} {y} -0.02 0 0 0"
        body += f'<frame name="{name}_tip" attached_to="{end}"><pose>{at}</pose></frame>'
    return f'<sdf version="1.11"><model name="tripod">{body}{extra}</model></sdf>'


def read(folder, text=YAML, document=None):
    """Write both files into a folder and read the robot."""
    (folder / "model.sdf").write_text(sdf() if document is None else document)
    (folder / "rods.yaml").write_text(text)
    return read_rod_robot(folder)
