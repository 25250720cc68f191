"""Muscles of robots whose frames, sites or links have the names of markers.

CAD programs' exporters keep names: those of `cards_core.formats.imports.markers` say which places
are via points. SDF has frames, MJCF sites, URDF links without mass; all are frames of a `Robot`.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace

from cards_core.errors import DescriptionError
from cards_core.formats.imports.findings import FilePlace, FindingList, NameTable, Place
from cards_core.formats.imports.markers import (
    TENSION_LIMITS,
    MarkedPoint,
    Marker,
    flat_muscles,
    marked,
    meant_marker,
    misspelt,
    muscle_paths,
    parse_marker,
)
from cards_core.formats.xml_lines import XmlElement
from cards_core.robot.elements import WORLD, Frame, Joint, Muscle
from cards_core.robot.model import Robot
from cards_core.spatial import Pose

NEGLIGIBLE = 1e-8
"""Mass of a link that stands for a place, at most, [kg]; onshape-to-robot writes 1e-9 kg."""


def muscles_from_frames(
    robot: Robot,
    *,
    links: Mapping[str, str] | None = None,
    table: NameTable | None = None,
    stated: Mapping[str, Place] | None = None,
) -> Robot:
    """Return the robot with the muscles that its frames state, of tensions `TENSION_LIMITS`.

    Frames ``muscle:NAME:K`` become via points and are frames no more; frames ``frame:NAME`` lose
    their prefix. Wrap surfaces must be in the robot: ``wrap:NAME:MUSCLE:K`` puts surface NAME into
    a path. A point that names another link with ``@LINK`` is on that one, at the place where it is
    while all joints are at zero. Two flat names at least, ``muscle_biceps_1`` and
    ``muscle_biceps_2``, are read too. For frames of SDF, sites of MJCF, and links without mass of
    URDF once they are frames.

    Args:
        robot: With its frames.
        links: Name behind ``@`` to the robot's, where they differ.
        table: Remembers what is renamed.
        stated: Muscle of the robot to where it is stated, for messages, if not in its own file.

    Raises:
        DescriptionError: A name that begins like a marker's and is none, a path that is not
            decided, a link that does not exist, or a muscle that the robot has already.
    """
    points, frames = [], []
    known = {item.name for item in robot.wrap_surfaces}
    flat_names = flat_muscles(frame.name for frame in robot.frames)
    markers = [
        _marker(frame.name, "frame", flat_names, FilePlace(robot.source, frame.line))
        for frame in robot.frames
    ]
    pairs = list(zip(robot.frames, markers, strict=True))
    plain = [frame.name for frame, marker in pairs if marker is None]
    taken = NameTable(
        (WORLD, *plain, *(x.name for x in robot.links), *(x.name for x in robot.joints))
    )
    operational = robot.operational_frame
    poses = _link_poses(robot.joints)
    for frame, marker in pairs:
        if marker is None:
            frames.append(frame)
            continue
        if marker.link is not None:
            frame = _moved(frame, (links or {}).get(marker.link, marker.link), poses, robot)  # noqa: PLW2901
        if marker.kind == "frame":
            name = taken.claim(marker.name)
            frames.append(replace(frame, name=name))
            operational = name if operational == frame.name else operational
        elif marker.kind == "wrap" and (marker.name not in known or not marker.muscle):
            raise robot.error(
                frame,
                f"no wrap surface '{marker.name}' that a path could use",
                "wrap:NAME:MUSCLE:K with the name of a wrap surface of the robot",
            )
        else:
            points.append(_point(frame, marker))
    names = NameTable()
    there = {muscle.name: muscle for muscle in robot.muscles}
    muscles = []
    for name, path in muscle_paths(points, robot.joints, robot.source).items():
        safe = names.claim(name)
        if safe in there:
            point = next(item for item in points if item.marker.muscle == name)
            at = (stated or {}).get(safe, FilePlace(robot.source, there[safe].line))
            place = "" if point.line is None else f" (line {point.line} of {robot.source})"
            raise DescriptionError(
                f"it is stated here, and '{point.name}'{place} marks a point of it, too",
                source=at.source,
                line=at.line or None,
                element=f"muscle '{safe}'",
                expected="one of them, or another name in the markers",
            )
        muscles.append(Muscle(safe, path, *TENSION_LIMITS))
    if table is not None:
        table.renamed += [*taken.renamed, *names.renamed]
    return replace(
        robot,
        frames=tuple(frames),
        muscles=(*robot.muscles, *muscles),
        operational_frame=operational,
    )


def add_marked_muscles(
    robot: Robot,
    findings: FindingList,
    *,
    links: Mapping[str, str] | None = None,
    table: NameTable | None = None,
    stated: Mapping[str, Place] | None = None,
) -> Robot:
    """Return `muscles_from_frames` of a robot that is imported, and say what was assumed.

    Args:
        robot: With its frames.
        findings: Takes the remarks.
        links: Name behind ``@`` to the robot's, where they differ.
        table: Remembers what is renamed.
        stated: As of `muscles_from_frames`.

    Raises:
        DescriptionError: As `muscles_from_frames`.
    """
    for frame in robot.frames:
        warn_if_misspelt(frame.name, "frame", findings, FilePlace(robot.source, frame.line))
    out = muscles_from_frames(robot, links=links, table=table, stated=stated)
    fresh = len(out.muscles) - len(robot.muscles)
    if fresh:
        low, high = TENSION_LIMITS
        findings.warn(
            "tension-assumed",
            f"{fresh} muscles",
            f"nothing states their tension limits; taken as {low:g} to {high:g} N",
            at=FilePlace(robot.source),
        )
    before = {frame.name for frame in robot.frames}
    marked = [frame.name for frame in out.frames if frame.name not in before]
    if len(marked) == 1 and out.operational_frame is None:
        findings.note(
            "operational-frame",
            f"frame '{marked[0]}'",
            "the only marked frame; operational space is its place",
            at=FilePlace(robot.source),
        )
        out = replace(out, operational_frame=marked[0])
    return out


def warn_if_misspelt(name: str, kind: str, findings: FindingList, at: Place) -> None:
    """Warn of a name whose first word is nearly that of a marker: it is read as any other name.

    Args:
        name: In the file.
        kind: What has it, e.g. ``site``.
        findings: Takes the warning.
        at: Where it stands.
    """
    meant = meant_marker(name.rpartition("::")[2])
    if meant is not None:
        findings.warn("marker-misspelt", f"{kind} '{name}'", misspelt(meant), at=at)


def _point(frame: Frame, marker: Marker) -> MarkedPoint:
    return MarkedPoint(frame.name, marker, frame.link, frame.pose.translation, frame.line)


def _link_poses(joints: Sequence[Joint]) -> dict[str, Pose]:
    """Return the pose of every link in the world while all joints are at zero."""
    poses = {WORLD: Pose()}
    waiting = list(joints)
    while waiting:
        ready = [joint for joint in waiting if joint.parent in poses]
        if not ready:  # of a loop; the tree of the robot says what is wrong
            break
        for joint in ready:
            poses[joint.child] = poses[joint.parent] @ joint.parent_to_joint @ joint.joint_to_child
        waiting = [joint for joint in waiting if joint.child not in poses]
    return poses


def _marker(name: str, kind: str, flat: Collection[str], at: Place) -> Marker | None:
    """Return what the name of a frame or link says; ``flat``: muscles read without colons."""
    local = name.rpartition("::")[2]
    try:
        marker = parse_marker(local, flat=True)
    except ValueError as error:
        raise DescriptionError(
            "the name begins like a marker's",
            source=at.source,
            line=at.line,
            element=f"{kind} '{name}'",
            expected=str(error),
        ) from None
    if marker and ":" not in local and marker.muscle not in flat:
        return None
    return marker


def _moved(frame: Frame, link: str, poses: Mapping[str, Pose], robot: Robot) -> Frame:
    """Return the frame on another link, where it is while all joints are at zero."""
    if link not in poses:
        raise robot.error(frame, f"no link '{link}'", f"one of {', '.join(sorted(poses))}")
    if link == frame.link:
        return frame
    pose = poses[link].inverse() @ poses[frame.link] @ frame.pose
    return replace(frame, link=link, pose=pose)


def take_marked_links(robot: Robot, names: Mapping[str, str], findings: FindingList) -> Robot:
    """Make frames of links that stand for places, as exporters of CAD programs write them.

    A link with the name of a marker that is fixed to another one is a place, however it is drawn.
    One of the kind ``muscle_biceps_1`` is a place if it has no mass and no shape, too.

    Args:
        robot: The robot.
        names: Its links to their names in the file.
        findings: Told of mass that is left out.

    Returns:
        The robot, whose new frames have the names of the file and may be on the world.

    Raises:
        DescriptionError: A link with such a name moves, or carries another one.
    """
    flat = flat_muscles(names.values())
    parents = {joint.parent for joint in robot.joints}
    holder = {joint.child: joint for joint in robot.joints}
    frames, gone = [], []
    for link in robot.links:
        name, joint = names.get(link.name, link.name), holder[link.name]
        at = FilePlace(robot.source, link.line)
        warn_if_misspelt(name, "link", findings, at)
        marker = _marker(name, "link", flat, at)
        if marker is None or (marker.kind == "frame" and joint.parent == WORLD):
            continue
        empty = link.inertia.mass <= NEGLIGIBLE and not (link.visuals or link.collisions)
        leaf = joint.kind == "fixed" and link.name not in parents
        if not name.lower().startswith(f"{marker.kind}:") and not (empty and leaf):
            continue
        if not leaf:
            what = "moves" if joint.kind != "fixed" else "carries another link"
            raise DescriptionError(
                f"is named as a marker and {what}",
                source=robot.source,
                line=link.line,
                element=f"link '{name}'",
                expected="a link without children that is fixed to another one, or another name",
            )
        if link.inertia.mass > NEGLIGIBLE:
            findings.warn(
                "marker-mass",
                f"link '{name}'",
                f"a marker is a place: its mass of {link.inertia.mass:g} kg is left out",
                at=FilePlace(robot.source, link.line),
            )
        pose = joint.parent_to_joint @ joint.joint_to_child
        frames.append(Frame(name, joint.parent, pose, link.line))
        gone.append(link.name)
    return replace(
        robot,
        links=tuple(link for link in robot.links if link.name not in gone),
        joints=tuple(joint for joint in robot.joints if joint.child not in gone),
        frames=(*robot.frames, *frames),
    )


def attach_marked_frames(root: XmlElement, findings: FindingList) -> None:
    """Attach frames of SDF that are markers to the link that their pose is relative to.

    SDF attaches a frame without ``attached_to`` to the model, where it does not move with the
    link; onshape-to-robot writes its frames like that.

    Args:
        root: Document, changed in place.
        findings: Told of every frame that is attached.
    """
    for element in root.iter("model"):
        assert isinstance(element, XmlElement)
        links = [link.get("name", "") for link in element.iter("link")]
        frames = list(element.children("frame"))
        markers = marked(item.get("name", "") for item in frames)
        for frame in frames:
            pose = frame.child("pose")
            link = "" if pose is None else pose.get("relative_to", "")
            name = frame.get("name", "")
            if name in markers and "attached_to" not in frame.attrib and link in links:
                frame.set("attached_to", link)
                findings.note(
                    "marker-attached",
                    f"frame '{name}'",
                    f"attached to link '{link}', which its pose is relative to",
                    at=frame,
                )
