"""The forms of the editor: muscle and its path, wrap surface, pose, load.

Fields, units and limits of muscle parameters are those of the actuator classes. What is typed is
applied by *Apply* or Enter, as one step that can be undone.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import numpy as np
import viser

from cards_core.editing import operations as edits
from cards_core.editing import surfaces as shapes
from cards_core.editing.block_checks import is_draft
from cards_core.errors import ParameterError
from cards_core.formats.sdf.muscle_text import EditedBlock
from cards_core.parameters.declaration import Parameter
from cards_core.robot.actuators import ACTUATORS
from cards_core.robot.elements import (
    Cylinder,
    Ellipsoid,
    Mesh,
    Muscle,
    Torus,
    Wrap,
    WrapGeometry,
    WrapSurface,
)
from cards_core.robot.model import Tree
from cards_core.spatial import Pose, rpy_matrix
from cards_core.typing import Array
from cards_viz.editor.session import EditorSession, EditorView, Selection
from cards_viz.pages.widgets import Axis, Guard, SliderGroup

NONE = "-"
"""Of a list: nothing is selected."""


def number_of(text: str, name: str) -> float:
    """Return the number that a text says. Raises `ParameterError`, which names the field."""
    try:
        value = float(text)
    except ValueError:
        value = math.nan
    if not math.isfinite(value):
        raise ParameterError(f"{name} is '{text}' (expected: a number)")
    return value


def shown(value: float | None) -> str:
    """Return a number as it stands in a field."""
    return "" if value is None else f"{value:.9g}"


def element_names(muscle: Muscle) -> list[str]:
    """Return what the elements of a path are called in its list."""
    out = []
    for k, item in enumerate(muscle.path, start=1):
        where = f"over {item.surface}" if isinstance(item, Wrap) else item.link
        out.append(f"{k}: {type(item).__name__.replace('ViaPoint', 'point').lower()} {where}")
    return out


class _Group:
    """Controls that are made anew when their structure changes, else only follow values."""

    def __init__(self, gui: viser.GuiApi, session: EditorSession, run: Guard) -> None:
        self._gui, self._session, self._run = gui, session, run
        self._folder = gui.add_folder(None)
        self._parts: list[Any] = []
        self._key: Any = None

    def _rebuilt(self, key: Any) -> bool:
        """Return whether the controls have to be made anew; the old ones are gone then."""
        if key == self._key:
            return False
        self._key = key
        for part in reversed(self._parts):  # what is in a folder before the folder
            part.remove()
        self._parts = []
        return True

    def _keep(self, part: Any) -> Any:
        self._parts.append(part)
        return part

    def _user(self, control: Any, action: Callable[[Any], None]) -> Any:
        """Let a control act when a user has moved it, not when it follows."""

        def moved(event: Any) -> None:
            if event.client is not None:
                self._run(lambda: action(event.target.value))

        control.on_update(moved)
        return self._keep(control)

    def _buttons(self, label: str, actions: dict[str, Callable[[], None]]) -> None:
        group = self._keep(self._gui.add_button_group(label, list(actions)))
        group.on_click(lambda event: self._run(actions[event.target.value]))


class MuscleForm(_Group):
    """Which muscle, its path, its limits and parameters."""

    def __init__(self, gui: viser.GuiApi, session: EditorSession, run: Guard) -> None:
        super().__init__(gui, session, run)
        with self._folder:
            new = gui.add_button("New muscle", icon=viser.Icon.PLUS)
            new.on_click(lambda _: run(session.new_muscle))
        self._path = _PathForm(gui, session, run)
        self._parameters = _ParameterForm(gui, session, run)
        self._list: Any = None

    def draw(self, view: EditorView) -> None:
        """Show what is selected."""
        session, names = self._session, [e.muscle.name for e in view.block.muscles]
        chosen = view.selection.muscle
        if self._rebuilt(tuple(names)):
            with self._folder:
                self._list = self._user(
                    self._gui.add_dropdown("muscle", [NONE, *names], initial_value=chosen or NONE),
                    lambda name: session.select(Selection(None if name == NONE else name)),
                )
                if names:
                    self._buttons("", {"Remove muscle": session.remove_muscle})
        self._list.value = chosen or NONE
        self._path.draw(view)
        self._parameters.draw(view)


class _PathForm(_Group):
    """The path of the selected muscle."""

    def draw(self, view: EditorView) -> None:
        """Show the path, and the place of the selected point."""
        muscle = view.muscle
        names = [] if muscle is None else element_names(muscle)
        surfaces = [surface.name for surface in view.robot.wrap_surfaces]
        index = view.selection.element
        item = None if muscle is None or index is None else muscle.path[index]
        key = (
            None if muscle is None else muscle.name, tuple(names), tuple(surfaces), index,
            isinstance(item, Wrap) and (item.inside, item.side is None),
        )  # fmt: skip
        if self._rebuilt(key) and muscle is not None:
            with self._folder:
                self._build(muscle, names, surfaces, index)
        if item is not None and not isinstance(item, Wrap) and not view.dragging:
            for field, value in zip(self._position, item.position, strict=True):
                field.value = shown(1e3 * float(value))
            self._friction.value = shown(getattr(item, "friction", 0.0))

    def _build(
        self, muscle: Muscle, names: list[str], surfaces: list[str], index: int | None
    ) -> None:
        gui, session, name = self._gui, self._session, muscle.name
        folder = self._keep(gui.add_folder("Path"))
        with folder:
            if not names:
                self._keep(gui.add_html(_note("click on links to add its points")))
                return
            self._user(
                gui.add_dropdown(
                    "point", [NONE, *names], initial_value=NONE if index is None else names[index]
                ),
                lambda text: session.select(
                    Selection(name, None if text == NONE else names.index(text))
                ),
            )
            if index is None:
                return
            item = muscle.path[index]
            self._buttons(
                "", {"Insert after": session.insert_point, "Remove": session.remove_element}
            )
            self._buttons(
                "order",
                {
                    "Earlier": lambda: session.move_element(-1),
                    "Later": lambda: session.move_element(1),
                },
            )
            if isinstance(item, Wrap):
                self._build_wrap(name, index, item)
                return
            self._user(
                gui.add_dropdown("attached to", session.link_names, initial_value=item.link),
                session.attach,
            )
            self._build_position(name, index)
            if surfaces:
                wrap = self._keep(gui.add_dropdown("surface", surfaces))
                self._buttons("", {"Wrap after it": lambda: session.wrap(str(wrap.value))})

    def _build_position(self, name: str, index: int) -> None:
        gui, session = self._gui, self._session
        form = self._keep(gui.add_form(None))
        with form:
            self._position = [gui.add_text(f"{axis} [mm]", "") for axis in "xyz"]
            self._friction = gui.add_text("friction", "", hint="capstan coefficient, 0 to 2")
            apply = gui.add_button("Apply point", color="gray")
        apply.on_click(lambda _: form.submit())

        def submit() -> None:
            fields = zip(self._position, "xyz", strict=True)
            position = np.array([1e-3 * number_of(f.value, axis) for f, axis in fields])
            friction = number_of(self._friction.value, "friction")
            muscle = session.view().muscle
            if muscle is None or muscle.name != name or index >= len(muscle.path):
                return
            item = muscle.path[index]
            if isinstance(item, Wrap):
                return

            def place(block: EditedBlock) -> EditedBlock:
                block = edits.place_point(block, name, index, item.link, position)
                if friction != getattr(item, "friction", 0.0):
                    block = edits.set_contact_friction(block, name, index, friction)
                return block

            session.change(f"place point {index + 1} of '{name}'", place)

        form.on_submit(lambda _: self._run(submit))

    def _build_wrap(self, name: str, index: int, item: Wrap) -> None:
        session = self._session

        def inside(value: bool) -> None:
            text = f"'{name}' {'through' if value else 'over'} '{item.surface}'"
            session.change(
                text, lambda b: edits.set_wrap(b, name, index, side=item.side, inside=bool(value))
            )

        def shorter() -> None:
            text = f"'{name}' takes the shorter way over '{item.surface}'"
            session.change(
                text, lambda b: edits.set_wrap(b, name, index, side=None, inside=item.inside)
            )

        self._buttons("side", {"Other side": session.flip_side, "Shorter way": shorter})
        self._user(
            self._gui.add_checkbox(
                "runs through the inside", item.inside, hint="of a cylinder's bore, a torus' hole"
            ),
            inside,
        )


class _ParameterForm(_Group):
    """Name, limits and actuator of the selected muscle."""

    def draw(self, view: EditorView) -> None:
        """Show the parameters of the selected muscle."""
        muscle = view.muscle
        # numbers count too: what is typed and not applied gives way to what is undone
        key = None
        if muscle is not None:
            law = muscle.control
            key = (
                muscle.name, muscle.tension_min, muscle.tension_max, muscle.actuator, law,
                is_draft(muscle),
            )  # fmt: skip
        if self._rebuilt(key) and muscle is not None:
            with self._folder:
                self._build(muscle)

    def _build(self, muscle: Muscle) -> None:
        gui, session, name = self._gui, self._session, muscle.name
        folder = self._keep(gui.add_folder("Parameters", expand_by_default=not is_draft(muscle)))
        with folder:
            self._user(
                gui.add_dropdown("actuator", list(ACTUATORS), initial_value=muscle.kind),
                lambda kind: self._set_kind(name, kind),
            )
            for group, there in edits.optional_groups(muscle.actuator):
                box = gui.add_checkbox(f"with {group}", there)
                self._user(box, partial(self._set_group, name, group))
            form = self._keep(gui.add_form(None))
            with form:
                title = gui.add_text("name", name)
                low = high = None
                if muscle.actuator.commands:
                    low = gui.add_text("tension min [N]", shown(muscle.tension_min))
                    high = gui.add_text(
                        "tension max [N]",
                        shown(muscle.tension_max) if math.isfinite(muscle.tension_max) else "",
                    )
                found = edits.parameter_fields(muscle.actuator)
                if muscle.takes_tension:
                    found += edits.parameter_fields(muscle.control, "control.")
                fields = [
                    (path, spec, value, self._field(path, spec, value))
                    for path, spec, value in found
                ]
                apply = gui.add_button("Apply", color="gray")
            apply.on_click(lambda _: form.submit())

        def submit() -> None:
            def all_of(block: EditedBlock) -> EditedBlock:
                if low is not None and high is not None and high.value.strip():
                    limits = (
                        number_of(low.value, "tension min"),
                        number_of(high.value, "tension max"),
                    )
                    if limits != (muscle.tension_min, muscle.tension_max):
                        block = edits.set_tension(block, name, *limits)
                block = self._with_fields(block, name, fields)
                return edits.rename_muscle(block, name, title.value.strip())

            new = title.value.strip()
            session.change(f"parameters of '{name}'", all_of)
            if new != name:
                session.select(Selection(new, session.view().selection.element))

        form.on_submit(lambda _: self._run(submit))

    def _set_group(self, name: str, group: str, on: bool) -> None:
        value = True if on else None
        text = f"{group} of '{name}'"
        self._session.change(text, lambda b: edits.set_parameter(b, name, group, value))

    def _field(self, path: str, spec: Parameter, value: Any) -> Any:
        label = path if not spec.unit else f"{path} [{spec.unit}]"
        hint = spec.full_description
        if spec.choices:
            return self._gui.add_dropdown(
                label, list(spec.choices), initial_value=value, hint=hint
            )
        if spec.scalar_type is bool:
            return self._gui.add_checkbox(label, bool(value), hint=hint)
        return self._gui.add_text(
            label, value if isinstance(value, str) else shown(value), hint=hint
        )

    @staticmethod
    def _with_fields(
        block: EditedBlock, name: str, fields: Sequence[tuple[str, Parameter, Any, Any]]
    ) -> EditedBlock:
        """Return a block with what was changed in the fields, checked when all are set."""
        changes: dict[str, Any] = {}
        for path, spec, old, field in fields:
            typed = field.value
            if isinstance(typed, str) and not spec.choices and spec.scalar_type is not str:
                text = typed.strip()
                if text == shown(old):
                    continue
                if text:
                    changes[path] = number_of(text, f"muscle '{name}': {path}")
                elif spec.default is None:
                    changes[path] = None
                else:
                    raise ParameterError(
                        f"muscle '{name}': {path} is empty (expected: {spec.full_description})"
                    )
            elif typed != old:
                changes[path] = typed
        return edits.set_parameters(block, name, changes)

    def _set_kind(self, name: str, kind: str) -> None:
        session = self._session
        muscle = session.view().muscle
        if muscle is None or muscle.name != name:
            return
        length = session.length_of(muscle)
        session.change(f"'{name}' is a {kind}", lambda b: edits.set_kind(b, name, kind, length))


class SurfaceForm(_Group):
    """The selected wrap surface."""

    def __init__(self, gui: viser.GuiApi, session: EditorSession, run: Guard) -> None:
        super().__init__(gui, session, run)
        with self._folder:
            new = gui.add_button("New wrap surface", icon=viser.Icon.PLUS)
            new.on_click(lambda _: run(lambda: session.set_mode("adds a wrap surface")))

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
            for label, value in _surface_values(surface).items():
                self._fields[label].value = shown(value)

    def _build(self, names: list[str], surface: WrapSurface | None) -> None:
        gui, session = self._gui, self._session
        chosen = NONE if surface is None else surface.name
        self._user(
            gui.add_dropdown("surface", [NONE, *names], initial_value=chosen),
            lambda name: session.select(Selection() if name == NONE else Selection(surface=name)),
        )
        if surface is None:
            self._keep(gui.add_html(_note("'New wrap surface', then click on a link")))
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
    metres = {label: 1e-3 * (value or 0.0) for label, value in values.items()}
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


class PoseForm:
    """Sliders for the pose of the robot."""

    def __init__(self, gui: viser.GuiApi, session: EditorSession, run: Guard) -> None:
        tree = session.tree
        self._tree = tree
        axes = [axis for node in tree.nodes for axis in _axes(tree, node)]
        home = gui.add_button("Home pose", icon=viser.Icon.HOME, color="gray")
        self.group = SliderGroup(
            gui, axes, lambda values: run(lambda: session.pose(pose_of(tree, values)))
        )
        self.group.follow(home_values(tree))

        def go_home() -> None:
            session.pose(tree.home)
            self.group.forget()
            self.group.follow(home_values(tree))

        home.on_click(lambda _: run(go_home))


def home_values(tree: Tree) -> Array:
    """Return the values of the sliders at home: coordinates, and zero for ball joints."""
    out = np.zeros(tree.nv)
    for node in tree.nodes:
        if node.kind != "ball":
            out[node.v] = tree.home[node.q]
    return out


def pose_of(tree: Tree, values: Array) -> Array:
    """Return q, shape (nq,), of values as of `home_values`; balls turn from home."""
    step = np.zeros(tree.nv)
    out = tree.home.copy()
    for node in tree.nodes:
        if node.kind == "ball":
            step[node.v : node.v + 3] = values[node.v : node.v + 3]
    out = tree.integrate(out, step)
    for node in tree.nodes:
        if node.kind != "ball":
            out[node.q] = values[node.v]
    return out


def _axes(tree: Tree, node: Any) -> list[Axis]:
    if node.kind == "ball":
        return [
            Axis(f"{tree.velocity_names[node.v + k]} [°]", -math.pi, math.pi, 180 / math.pi, 0.5)
            for k in range(3)
        ]
    low, high, home = (float(v[node.q]) for v in (tree.lower, tree.upper, tree.home))
    turning = node.kind == "revolute"
    unit, factor, step, span = (
        ("°", 180 / math.pi, 0.5, math.pi) if turning else ("mm", 1e3, 1.0, 1.0)
    )
    low = low if math.isfinite(low) else home - span
    high = high if math.isfinite(high) else home + span
    return [Axis(f"{node.name} [{unit}]", low, high, factor, step)]


class LoadForm:
    """What the robot holds."""

    def __init__(self, gui: viser.GuiApi, session: EditorSession, run: Guard) -> None:
        frames = [*(f.name for f in session.editor.base.frames), *session.editor.links]
        load = session.view().load
        first = frames[-1] if load is None else load.frame
        frame = gui.add_dropdown("load at", frames, initial_value=first)
        mass = gui.add_slider(
            "mass [kg]", min=0.0, max=20.0, step=0.1, initial_value=0.0,
            hint="weight that hangs at the origin of this frame; gravity of the links acts anyway",
        )  # fmt: skip

        def moved(event: Any) -> None:
            if event.client is not None:
                run(lambda: session.hold(str(frame.value), float(mass.value)))

        frame.on_update(moved)
        mass.on_update(moved)


def _note(text: str) -> str:
    return f'<div style="padding:0 12px;font-size:12px;color:#555">{text}</div>'
