"""The form of the selected muscle: its path, limits and parameters.

Fields, units and limits are those of the actuator classes (`cards_core.robot.actuators`).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import partial
from typing import Any

import numpy as np
import viser

from cards_core.editing import operations as edits
from cards_core.editing.block_checks import is_draft
from cards_core.errors import ParameterError
from cards_core.formats.sdf.muscle_text import EditedBlock
from cards_core.parameters.declaration import Parameter
from cards_core.robot.actuators import ACTUATORS
from cards_core.robot.elements import Muscle, Wrap
from cards_core.typing import Vector3
from cards_viz.editor.fields import NONE, FormGroup, note, number_of, shown
from cards_viz.editor.session import EditorSession, EditorView, Selection
from cards_viz.pages.widgets import Guard


def element_names(muscle: Muscle) -> list[str]:
    """Return what the elements of a path are called in its list."""
    out = []
    for k, item in enumerate(muscle.path, start=1):
        where = f"over {item.surface}" if isinstance(item, Wrap) else item.link
        out.append(f"{k}: {type(item).__name__.replace('ViaPoint', 'point').lower()} {where}")
    return out


class MuscleForm(FormGroup):
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


class _PathForm(FormGroup):
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
            values = [1e3 * float(value) for value in item.position]
            values.append(getattr(item, "friction", 0.0))
            fields = (*self._position, self._friction)
            self._tell([(f, shown(v)) for f, v in zip(fields, values, strict=True)])

    def _build(
        self, muscle: Muscle, names: list[str], surfaces: list[str], index: int | None
    ) -> None:
        gui, session, name = self._gui, self._session, muscle.name
        folder = self._keep(gui.add_folder("Path"))
        with folder:
            if not names:
                self._keep(gui.add_html(note("click on links to add its points")))
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
            muscle = session.view().muscle
            if muscle is None or muscle.name != name or index >= len(muscle.path):
                return
            item = muscle.path[index]
            if isinstance(item, Wrap):
                return
            texts = [field.value for field in self._position]
            position = typed_position(texts, item.position)
            friction = number_of(self._friction.value, "friction")

            def place(block: EditedBlock) -> EditedBlock:
                if not np.array_equal(position, item.position):
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


class _ParameterForm(FormGroup):
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
                muscle.friction_speed,
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
                speed = gui.add_text(
                    "friction_speed [m/s]",
                    shown(muscle.friction_speed),
                    hint="sliding speed at which friction over points and wraps is three quarters",
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
                if speed.value.strip() != shown(muscle.friction_speed):
                    sliding = number_of(speed.value, "friction_speed")
                    block = edits.set_friction_speed(block, name, sliding)
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
        self._session.change(text, lambda b: edits.set_parameters(b, name, {group: value}))

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


def typed_position(texts: Sequence[str], old: Vector3) -> Vector3:
    """Return the position that fields say; what was not touched keeps all its digits.

    Args:
        texts: Of the fields x, y, z, [mm].
        old: Position that they showed, shape (3,), [m].

    Raises:
        ParameterError: One is no number.
    """
    out = np.array(old, dtype=float)
    for k, (text, axis) in enumerate(zip(texts, "xyz", strict=True)):
        if text.strip() != shown(1e3 * float(old[k])):
            out[k] = round(1e-3 * number_of(text, f"{axis} [mm]"), 12)
    return out
