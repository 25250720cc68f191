"""From components to links: which body belongs to which link, its mass, its meshes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from fnmatch import fnmatchcase

import numpy as np
from scipy.spatial import ConvexHull, QhullError

from cards_core.checks import LARGEST
from cards_core.errors import DescriptionError
from cards_core.formats.cad.assembly import Assembly, Component, Solid
from cards_core.formats.cad.config import BodyEntry, Config
from cards_core.formats.cad.materials import DEFAULT, DENSITIES, PLAUSIBLE
from cards_core.formats.imports.findings import SAFE, FilePlace, FindingList, NameTable, safe_name
from cards_core.formats.imports.markers import Marker, meant_marker, misspelt, parse_marker
from cards_core.robot.elements import Collision, Inertia, Link, Mesh, Visual
from cards_core.robot.inertia import inertia_problem
from cards_core.robot.model import add_inertia, move_inertia
from cards_core.robot.stl_file import binary_stl
from cards_core.spatial import Pose
from cards_core.typing import Array

MAX_TRIANGLES = 200_000
"""Most of a mesh: MuJoCo reads no STL file with more."""

MESH_VOLUME = 0.05
"""Relative difference between the volume of a body and of its mesh that is reported."""


@dataclass(frozen=True, eq=False)
class Import:
    """What an import works on.

    Attributes:
        assembly: Content of the CAD file.
        config: What the user says.
        findings: Receives what was assumed or left out.
        source: The file, for messages.
    """

    assembly: Assembly
    config: Config
    findings: FindingList
    source: str


@dataclass(frozen=True, eq=False)
class Body:
    """A solid that counts.

    Attributes:
        path: Its name in reports and configurations.
        link: Its link.
        solid: The solid.
        pose: Of its component in the assembly.
        density: [kg/m^3].
        basis: What the density comes from, in words.
        inertia: Of the solid in the link's frame.
    """

    path: str
    link: str
    solid: Solid
    pose: Pose
    density: float
    basis: str
    inertia: Inertia


@dataclass(frozen=True, eq=False)
class MarkedComponent:
    """A component with the name of a marker.

    Attributes:
        name: As in the file.
        marker: What the name says.
        link: Its link, or None if nothing says it.
        component: The component.
        solids: Its solids and those of what is in it, with their poses in the assembly.
    """

    name: str
    marker: Marker
    link: str | None
    component: Component
    solids: tuple[tuple[Solid, Pose], ...]


@dataclass
class Layout:
    """Which component belongs to which link.

    Attributes:
        links: Link to the pose of its frame in the assembly.
        of_component: Index of a component to its link.
        shown: Index of a component to its path in reports: without that of the whole assembly.
        markers: Index of a component to what its name says.
        table: Names of links.
    """

    links: dict[str, Pose] = field(default_factory=dict)
    of_component: dict[int, str] = field(default_factory=dict)
    shown: dict[int, str] = field(default_factory=dict)
    markers: dict[int, Marker] = field(default_factory=dict)
    table: NameTable = field(default_factory=NameTable)


def lay_out(job: Import) -> Layout:
    """Return which component belongs to which link.

    Links are those of the configuration, else those of the file, else the topmost components.

    Args:
        job: File and configuration.

    Raises:
        DescriptionError: A pattern that matches nothing, a component in two links, or a name that
            begins like a marker's and is none.
    """
    layout = Layout()
    assembly, config = job.assembly, job.config
    components = assembly.components
    for index, item in enumerate(components):
        try:
            marker = parse_marker(item.name)
        except ValueError as error:
            raise DescriptionError(
                "the name begins like a marker's",
                source=job.source,
                element=f"component '{item.path}'",
                expected=str(error),
            ) from None
        if (meant := meant_marker(item.name)) is not None:
            job.findings.warn(
                "marker-misspelt",
                f"component '{item.path}'",
                misspelt(meant),
                at=FilePlace(job.source),
            )
        above = layout.markers.get(item.parent) if item.parent >= 0 else None
        if marker is not None:
            layout.markers[index] = marker
        elif above is not None:
            layout.markers[index] = above
    tops = _tops(components, layout.markers, _with_solids(components))
    if not tops:
        raise DescriptionError(
            "no solid in it", source=job.source, expected="at least one solid with a volume"
        )
    whole = components[tops[0]].parent
    prefix = "" if whole < 0 else components[whole].path + "/"
    for index, item in enumerate(components):
        layout.shown[index] = item.path.removeprefix(prefix)
    if config.links:
        _configured(layout, assembly, config)
    elif assembly.links:
        for given in assembly.links:
            name = layout.table.claim(given.name, "link")
            layout.links[name] = given.pose
            layout.of_component.update(dict.fromkeys(given.members, name))
    else:
        for index, item in enumerate(components):
            beside = item.parent == whole and index not in layout.markers
            if beside and index not in tops:
                job.findings.note(
                    "no-solid", f"component '{item.path}'", "no solid is in it; no link",
                    at=FilePlace(job.source),
                )  # fmt: skip
        for index in tops:
            name = layout.table.claim(components[index].name, "link")
            layout.links[name] = components[index].pose
            layout.of_component[index] = name
    for index, item in enumerate(components):
        if index not in layout.of_component and item.parent in layout.of_component:
            layout.of_component[index] = layout.of_component[item.parent]
    return layout


def _with_solids(components: Sequence[Component]) -> set[int]:
    """Return the components that have a solid, or something with one in them."""
    found: set[int] = set()
    for index, item in reversed(list(enumerate(components))):
        if item.solids or index in found:
            found |= {index, item.parent}
    return found


def _tops(
    components: Sequence[Component], markers: Mapping[int, Marker], solid: set[int]
) -> list[int]:
    """Return the components that become links if nothing else is said."""
    children: dict[int, list[int]] = {}
    for index, item in enumerate(components):
        if index not in markers and index in solid:
            children.setdefault(item.parent, []).append(index)
    level = children.get(-1, [])
    while len(level) == 1 and components[level[0]].assembly and children.get(level[0]):
        level = children[level[0]]
    return level


def _configured(layout: Layout, assembly: Assembly, config: Config) -> None:
    for name, patterns in config.links.items():
        where = config.top["links"][name]
        if safe_name(name) != name:
            raise where.error(f"'{name}' is no name", SAFE)
        layout.table.claim(name)
        first = None
        for pattern in patterns:
            found = [
                index
                for index in range(len(assembly.components))
                if index not in layout.markers
                and matches(pattern, layout.shown[index], assembly, index)
            ]
            if not found:
                raise where.error(
                    f"'{pattern}' matches no component",
                    "a path, with * and ? as wildcards; one of "
                    + ", ".join(list(layout.shown.values())[:20]),
                )
            for index in found:
                if layout.of_component.setdefault(index, name) != name:
                    raise where.error(
                        f"'{layout.shown[index]}' is in link '{layout.of_component[index]}' too",
                        "every component in one link",
                    )
            first = found[0] if first is None else first
        assert first is not None
        layout.links[name] = assembly.components[first].pose


def matches(pattern: str, shown: str, assembly: Assembly, index: int) -> bool:
    """Return whether a pattern names a component, by its path or its name.

    Args:
        pattern: With ``*`` and ``?`` as wildcards.
        shown: Path in reports.
        assembly: The assembly.
        index: Of the component.
    """
    item = assembly.components[index]
    return any(fnmatchcase(text, pattern) for text in (shown, item.path, item.name))


def marked_components(assembly: Assembly, layout: Layout) -> list[MarkedComponent]:
    """Return the components whose names say what they are."""
    out: list[MarkedComponent] = []
    for index, marker in layout.markers.items():
        item = assembly.components[index]
        if item.parent in layout.markers:
            continue  # part of the marker around it
        inside = {index}
        for other, component in enumerate(assembly.components):
            if component.parent in inside:
                inside.add(other)
        solids = tuple(
            (solid, assembly.components[i].pose)
            for i in sorted(inside)
            for solid in assembly.components[i].solids
        )
        link = marker.link or layout.of_component.get(item.parent)
        out.append(MarkedComponent(item.name, marker, link, item, solids))
    return out


def bodies_of(job: Import, layout: Layout, material: str | None) -> list[Body]:
    """Return the solids that have mass, with it.

    Args:
        job: File and configuration.
        layout: Which component belongs to which link.
        material: Of bodies that nothing else is said about, or None.

    Raises:
        DescriptionError: A body without link or volume, or a pattern that matches no body.
    """
    config, findings, source = job.config, job.findings, job.source
    used: set[str] = set()
    out: list[Body] = []
    taken: set[str] = set()
    for index, item in enumerate(job.assembly.components):
        for number, solid in enumerate(item.solids):
            path = layout.shown[index]
            if len(item.solids) > 1:
                path += f"/{safe_name(solid.name, str(number + 1))}"
                if path in taken:
                    path += f"_{number + 1}"
            taken.add(path)
            pattern = _entry(config, path, item.name)
            if pattern is not None:
                used.add(pattern)
            entry = config.bodies[pattern] if pattern is not None else None
            # markers are drawn to be found, and have no mass unless it is stated
            if (entry is None and index in layout.markers) or (entry is not None and entry.ignore):
                continue
            link = layout.of_component.get(index)
            if link is None:
                raise DescriptionError(
                    "belongs to no link",
                    source=config.source or source,
                    element=f"body '{path}'",
                    expected="a pattern under 'links' that matches it, or 'ignore: true' under "
                    "'bodies'",
                )
            density, basis = _density(path, solid, entry, material or config.material, source)
            # a solid whose faces point inwards has both negative
            second = np.sign(solid.volume) * solid.second_moment
            mass = density * abs(solid.volume)
            own = Inertia(mass, solid.centroid, density * second)
            in_link = layout.links[link].inverse() @ item.pose
            inertia = move_inertia(own, in_link)
            out.append(Body(path, link, solid, item.pose, density, basis, inertia))
            _check_body(out[-1], findings, source)
        if item.shells:
            findings.warn(
                "surface-without-solid",
                f"component '{layout.shown[index]}'",
                f"{item.shells} surfaces that enclose no solid were left out",
                at=FilePlace(source),
            )
    for pattern in config.bodies:
        if pattern not in used:
            raise config.bodies[pattern].where.error(
                f"'{pattern}' matches no body",
                "one of " + ", ".join(body.path for body in out[:20]),
            )
    assumed = [body.path for body in out if body.basis == "assumed"]
    if assumed:
        findings.warn(
            "material-assumed",
            f"{len(assumed)} bodies",
            f"nothing says what they are made of; taken as {DEFAULT}, "
            f"{DENSITIES[DEFAULT]:g} kg/m^3: {', '.join(assumed[:8])}"
            + (" ..." if len(assumed) > 8 else ""),
            at=FilePlace(source),
        )
    return out


def _entry(config: Config, path: str, name: str) -> str | None:
    """Return the last pattern that matches: later ones are exceptions to earlier ones."""
    found = [p for p in config.bodies if fnmatchcase(path, p) or fnmatchcase(name, p)]
    return found[-1] if found else None


def _density(
    path: str, solid: Solid, entry: BodyEntry | None, general: str | None, source: str
) -> tuple[float, str]:
    """Return the density of a body [kg/m^3] and what it comes from."""
    volume = abs(solid.volume)
    problem = ""
    if not volume > 0.0 or not np.isfinite(volume):
        problem = f"its volume is {solid.volume:g} m^3"
    elif not (np.abs(solid.vertices) < LARGEST).all():  # NaN fails this, too
        problem = "its surface has points that are not finite"
    if problem:
        raise DescriptionError(
            problem,
            source=source,
            element=f"body '{path}'",
            expected="a solid; or 'ignore: true' for it under 'bodies' of the configuration",
        )
    if entry is not None and entry.mass is not None:
        return entry.mass / volume, "mass stated"
    if entry is not None and entry.density is not None:
        return entry.density, entry.material or "density stated"
    if solid.density is not None and solid.density > 0.0:
        return solid.density, "the file"
    if general is not None:
        return DENSITIES[general], general
    return DENSITIES[DEFAULT], "assumed"


def _check_body(body: Body, findings: FindingList, source: str) -> None:
    subject = f"body '{body.path}'"
    solid = body.solid
    if solid.volume < 0.0:
        findings.warn(
            "inside-out", subject, "its faces point inwards; its volume was taken positive",
            at=FilePlace(source),
        )  # fmt: skip
    if not solid.valid:
        findings.warn(
            "shape-faulty", subject, "Open CASCADE finds faults in its topology; check its mass",
            at=FilePlace(source),
        )  # fmt: skip
    if not PLAUSIBLE[0] <= body.density <= PLAUSIBLE[1]:
        findings.warn(
            "density-implausible", subject, f"its density is {body.density:.3g} kg/m^3",
            at=FilePlace(source),
        )  # fmt: skip
    mesh = mesh_volume(solid.vertices, solid.triangles)
    if abs(mesh - abs(solid.volume)) > MESH_VOLUME * abs(solid.volume):
        findings.warn(
            "volume-differs",
            subject,
            f"its mesh encloses {mesh:.4g} m^3 and the solid {abs(solid.volume):.4g} m^3; check "
            "its mass, or use a smaller --tolerance",
            at=FilePlace(source),
        )


def mesh_volume(vertices: Array, triangles: Array) -> float:
    """Return the volume that a closed mesh encloses, [m^3]: ``|sum a . (b x c)| / 6``.

    Args:
        vertices: Shape (n, 3), [m].
        triangles: Indices, shape (k, 3).
    """
    if not len(triangles):
        return 0.0
    centred = vertices - vertices.mean(axis=0)
    a, b, c = (centred[triangles[:, i]] for i in range(3))
    return abs(float(np.einsum("ij,ij->", a, np.cross(b, c)))) / 6.0


# Links with meshes -----------------------------------------------------------------------------


def make_links(
    job: Import, layout: Layout, bodies: Sequence[Body], *, collisions: bool
) -> tuple[list[Link], dict[str, bytes | str]]:
    """Return the links, and the mesh files by name.

    Args:
        job: File and configuration.
        layout: Which component belongs to which link.
        bodies: With their inertia.
        collisions: Give links collision shapes: the convex hull of every body.

    Raises:
        DescriptionError: A link without bodies, an inertia that no body has, a mesh too large.
    """
    findings, source = job.findings, job.source
    given = {item.name: item for item in job.assembly.links if item.mass is not None}
    files: dict[str, bytes | str] = {}
    names = NameTable()
    meshes: dict[int, tuple[str, str]] = {}
    links = []
    for name, pose in layout.links.items():
        own = [body for body in bodies if body.link == name]
        inertia = Inertia()
        for body in own:
            inertia = add_inertia(inertia, body.inertia)
        if name in given:
            item = given[name]
            assert item.mass is not None
            assert item.com is not None
            assert item.tensor is not None
            inertia = Inertia(item.mass, item.com, item.tensor)
            findings.note(
                "inertia-from-file", f"link '{name}'", "mass and inertia as the file states them",
                at=FilePlace(source),
            )  # fmt: skip
        problem = inertia_problem(inertia)
        if problem:
            what = "it has no solids" if not own else f"not the inertia of a body: {problem}"
            raise DescriptionError(
                what,
                source=source,
                element=f"link '{name}'",
                expected="at least one solid with a volume",
            )
        visuals, shapes = [], []
        local = NameTable()
        for body in own:
            key = id(body.solid.vertices)
            if key not in meshes:
                meshes[key] = _mesh_files(body, names, files, source, collisions)
            drawn, hull = meshes[key]
            place = pose.inverse() @ body.pose
            label = local.claim(body.path.rpartition("/")[2], "body")
            rgba = body.solid.rgba or (0.7, 0.7, 0.72, 1.0)
            if drawn:
                visuals.append(Visual(label, Mesh(drawn), place, rgba))
            if hull:
                shapes.append(Collision(label, Mesh(hull), place))
        links.append(Link(name, inertia, tuple(visuals), tuple(shapes)))
    return links, files


def _mesh_files(
    body: Body, names: NameTable, files: dict[str, bytes | str], source: str, collisions: bool
) -> tuple[str, str]:
    solid = body.solid
    if not len(solid.triangles):
        return "", ""
    if len(solid.triangles) > MAX_TRIANGLES:
        raise DescriptionError(
            f"its mesh has {len(solid.triangles)} triangles",
            source=source,
            element=f"body '{body.path}'",
            expected=f"at most {MAX_TRIANGLES}: a larger --tolerance",
        )
    stem = names.claim(safe_name(body.path.replace("/", "_"))[:80], "body")
    drawn = f"{stem}.stl"
    files[drawn] = binary_stl(solid.vertices[solid.triangles])
    if not collisions:
        return drawn, ""
    try:
        hull = ConvexHull(solid.vertices)
    except (QhullError, ValueError):
        return drawn, ""  # flat to within rounding: nothing can touch it
    corners = hull.simplices.copy()
    a, b, c = (solid.vertices[corners[:, i]] for i in range(3))
    inwards = np.einsum("ij,ij->i", np.cross(b - a, c - a), hull.equations[:, :3]) < 0.0
    corners[inwards] = corners[inwards][:, ::-1]
    convex = f"{stem}_hull.stl"
    files[convex] = binary_stl(solid.vertices[corners])
    return drawn, convex


def rename(layout: Layout, name: str) -> str | None:
    """Return a link by its name here or in the file; None if there is none."""
    if name in layout.links:
        return name
    for old, new in layout.table.renamed:
        if old == name:
            return new
    return None
