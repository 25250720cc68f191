"""The form of the selected wrap surface."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import viser

from cards_core.editing import surfaces as shapes
from cards_core.formats.sdf.muscle_text import EditedBlock
from cards_core.robot.elements import (
    Cylinder,
    Ellipsoid,
    Mesh,
    Torus,
    WrapGeometry,
    WrapSurface,
)
from cards_core.spatial import Pose, rpy_matrix
from cards_viz.editor.fields import NONE, FormGroup, note, number_of, shown
from cards_viz.editor.session import ADD_SURFACE, EditorSession, EditorView, Selection
from cards_viz.pages.widgets import Guard


class SurfaceForm(FormGroup):
    """The selected wrap surface."""

    def __init__(self, gui: viser.GuiApi, session: EditorSession, run: Guard) -> None:
        super().__init__(gui, session, run)
        with self._folder:
            new = gui.add_button("New wrap surface", icon=viser.Icon.PLUS)
            new.on_click(lambda _: run(lambda: session.set_mode(ADD_SURFACE)))

    def draw(self, view: EditorView) -> None:
        """Show what is selected."""
        names = [e.surface.name for e in view.block.surfaces]
        surface = view.surface
        own = surface and (surface.name, surface.link, type(surface.geometry))
        if self._rebuilt((tuple(names), own)):
            self._fields: dict[str, Any] = {}
            with self._folder:
                self._build(names, surface)
        if surface is not None and not view.dragging:
            values = _surface_values(surface)
            self._tell([(self._fields[label], shown(value)) for label, value in values.items()])

    def _build(self, names: list[str], surface: WrapSurface | None) -> None:
        gui, session = self._gui, self._session
        chosen = NONE if surface is None else surface.name
        self._user(
            gui.add_dropdown("surface", [NONE, *names], initial_value=chosen),
            lambda name: session.select(Selection() if name == NONE else Selection(surface=name)),
        )
        if surface is None:
            self._keep(gui.add_html(note("'New wrap surface', then click on a link")))
            return
        name = surface.name
        self._buttons("", {"Remove surface": session.remove_surface})
        self._user(
            gui.add_dropdown("on link", session.link_names, initial_value=surface.link),
            lambda link: self._set_link(name, link),
        )
        joints = session.joints_of(surface.link)
        if joints:
            joint = self._keep(gui.add_dropdown("joint", joints))
            self._buttons(
                "", {"Centre on joint": lambda: session.centre_on_joint(str(joint.value))}
            )
        if not isinstance(surface.geometry, Mesh):
            kind = type(surface.geometry).__name__.lower()
            self._user(
                gui.add_dropdown("shape", list(shapes.SHAPES), initial_value=kind),
                lambda shape: self._set_shape(name, shape),
            )
        form = self._keep(gui.add_form(None))
        with form:
            title = gui.add_text("name", name)
            for label, value in _surface_values(surface).items():
                self._fields[label] = gui.add_text(label, shown(value))
            apply = gui.add_button("Apply", color="gray")
        apply.on_click(lambda _: form.submit())
        fields = dict(self._fields)

        def submit() -> None:
            new = title.value.strip()
            values = {label: field.value for label, field in fields.items()}

            def all_of(block: EditedBlock) -> EditedBlock:
                present = block.surfaces[shapes.surface_index(block, name)].surface
                geometry, pose = _surface_of(present, values)
                block = shapes.change_surface(block, name, geometry=geometry, pose=pose)
                return shapes.rename_surface(block, name, new)

            session.change(f"place and size of '{name}'", all_of)
            session.select(Selection(surface=new))

        form.on_submit(lambda _: self._run(submit))

    def _set_link(self, name: str, link: str) -> None:
        session = self._session
        surface = session.view().surface
        if surface is not None and surface.name == name:
            there = session.link_pose(surface.link) @ surface.pose
            pose = session.link_pose(link).inverse() @ there
            session.change(
                f"attach '{name}' to {link}",
                lambda b: shapes.change_surface(b, name, link=link, pose=pose),
            )

    def _set_shape(self, name: str, shape: str) -> None:
        session = self._session
        surface = session.view().surface
        if surface is not None and surface.name == name:
            radius = shapes.radius_of(surface.geometry)
            assert radius is not None
            geometry = shapes.first_shape(shape, radius)
            session.change(
                f"'{name}' is a {shape}",
                lambda b: shapes.change_surface(b, name, geometry=geometry),
            )


def _surface_values(surface: WrapSurface) -> dict[str, float | None]:
    """Return the fields of a surface by label, in units that are shown."""
    place = dict(zip(("x [mm]", "y [mm]", "z [mm]"), 1e3 * surface.pose.translation, strict=True))
    angles = np.degrees(surface.pose.rpy)
    turn = dict(zip(("roll [°]", "pitch [°]", "yaw [°]"), angles, strict=True))
    values: dict[str, float | None] = {key: float(v) for key, v in (place | turn).items()}
    match surface.geometry:
        case Ellipsoid(radii):
            values |= {
                f"radius {a} [mm]": 1e3 * float(r) for a, r in zip("xyz", radii, strict=True)
            }
        case Mesh():
            pass
        case _:
            values["radius [mm]"] = 1e3 * surface.geometry.radius
    if isinstance(surface.geometry, Torus):
        values["tube radius [mm]"] = 1e3 * surface.geometry.tube_radius
    if isinstance(surface.geometry, Cylinder):
        length = surface.geometry.length
        values["length [mm]"] = 1e3 * length if math.isfinite(length) else None
    return values


def _surface_of(surface: WrapSurface, texts: dict[str, str]) -> tuple[WrapGeometry, Pose]:
    """Return shape and pose that the fields say; what was not touched keeps all its digits."""
    old = _surface_values(surface)
    values = {
        label: old[label] if text.strip() == shown(old[label]) else number_of(text, label)
        for label, text in texts.items()
        if text.strip() or label != "length [mm]"
    }
    if all(values.get(label) == value for label, value in old.items()):
        return surface.geometry, surface.pose
    metres = {label: round(1e-3 * (value or 0.0), 12) for label, value in values.items()}
    turn = [math.radians(values[label] or 0.0) for label in ("roll [°]", "pitch [°]", "yaw [°]")]
    turned = any(values[label] != old[label] for label in ("roll [°]", "pitch [°]", "yaw [°]"))
    rotation = rpy_matrix(*turn) if turned else surface.pose.rotation
    place = np.array([metres[f"{axis} [mm]"] for axis in "xyz"])
    pose = Pose(rotation, place)
    match surface.geometry:
        case Mesh():
            return surface.geometry, pose
        case Ellipsoid():
            return Ellipsoid(np.array([metres[f"radius {a} [mm]"] for a in "xyz"])), pose
        case Torus():
            return Torus(metres["radius [mm]"], metres["tube radius [mm]"]), pose
        case Cylinder():
            return Cylinder(metres["radius [mm]"], metres.get("length [mm]", math.inf)), pose
        case _:
            return type(surface.geometry)(metres["radius [mm]"]), pose
