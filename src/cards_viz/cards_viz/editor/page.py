"""The page of the muscle editor: the robot in 3-D, its muscles to be edited, their effect live.

The drawing thread shows paths and handles at the page's pace; a thread of its own analyses the
newest state, so that a slow analysis never holds a drag up.
"""

from __future__ import annotations

import logging
import threading
import time
from html import escape

import numpy as np
import viser

from cards_core.editing.editor import MuscleEditor
from cards_core.editing.live_analysis import LiveAnalysis, LiveResult
from cards_core.errors import CardsError
from cards_core.robot.elements import Muscle, Wrap, WrapSurface
from cards_core.typing import Array
from cards_viz.colors import first_scale
from cards_viz.editor.charts import ArmCharts, summary_html
from cards_viz.editor.muscle_form import MuscleForm
from cards_viz.editor.picking import first_hit
from cards_viz.editor.pose_form import LoadForm, PoseForm
from cards_viz.editor.scene import DrawnMuscles, EditorScene, drawn_muscles, straight_path
from cards_viz.editor.session import ADD_POINT, ADD_SURFACE, MODES, EditorSession, EditorView
from cards_viz.editor.surface_form import SurfaceForm
from cards_viz.muscles.page_scene import MusclePageScene
from cards_viz.muscles.scene import Scene, Shape
from cards_viz.pages.page import Page, SnapshotBox
from cards_viz.pages.scene import Camera
from cards_viz.pages.widgets import DrawingPanel, guarded

LOG = logging.getLogger(__name__)

PANEL_WIDTH, CHARTS_WIDTH = 370, 340  # [px]

RATE = 40.0
"""Updates a second: more than 30, which is what is left of it on a busy machine."""

TRANSLUCENT = 0.35
"""Opacity of links that muscles are seen through."""

KEEP_PERIOD = 2.0
"""Time between two looks for what has to be kept in case nobody saves it, [s]."""


class EditorPage(Page[EditorView]):
    """A page that edits the muscles of one robot.

    Args:
        editor: Muscles and file.
        host, port, rate: As of `Page`.

    Attributes:
        session: What clicks and drags do.
        analyses: Number of analyses so far.
        result: The last one; None before the first.
        problem: Why the last analysis failed; empty if it did not.

    Raises:
        PortError: No port to listen on.
    """

    updates_ahead = 3  # a page takes all that wait in one picture

    def __init__(
        self,
        editor: MuscleEditor,
        *,
        host: str = "127.0.0.1",
        port: int = 8080,
        rate: float = RATE,
    ) -> None:
        robot = editor.base
        super().__init__(f"{robot.name}: muscles", host=host, port=port, rate=rate)
        self.scene = Scene(robot, every_link=True, backend="numeric")
        self.session = EditorSession(editor, self.scene.size)
        self._live = LiveAnalysis(robot)
        self._run_command = guarded(self.notify)
        self._nodes = MusclePageScene(
            self.server, self.scene, first_scale(robot), with_muscles=False
        )
        self._edit = EditorScene(self.server, self.session, self._run_command, self.scene.size)
        self._drawn: DrawnMuscles | None = None
        self._view = self.session.view()
        self.result: LiveResult | None = None
        self.analyses = 0
        self._asked: SnapshotBox[EditorView] = SnapshotBox()
        self._wake, self._ended = threading.Event(), threading.Event()
        self._paths: dict[int, tuple[Muscle, list[WrapSurface | None], Array]] = {}
        self._drawn_poses = self.session.poses
        self.problem = self._complaint = ""
        self._build_panels()
        self._connect_links()
        self.session.tell = self._tell
        self._tell(self._view)
        self._analyst = threading.Thread(target=self._analyse, name="analysis", daemon=True)
        self._analyst.start()
        self._start()

    # Panels -----------------------------------------------------------------------------------

    def _build_panels(self) -> None:
        gui, session, run = self.server.gui, self.session, self._run_command
        gui.main_panel.dock_right()
        gui.main_panel.set_width(PANEL_WIDTH)
        self._status = gui.add_html("")
        actions = {"Undo": session.undo, "Redo": session.redo, "Save": self.save}
        buttons = gui.add_button_group("", list(actions))
        buttons.on_click(lambda event: run(actions[event.target.value]))
        self._mode = gui.add_dropdown("a click on a link", list(MODES))
        self._mode.on_update(
            lambda event: event.client and run(lambda: session.set_mode(event.target.value))
        )
        tabs = gui.add_tab_group()
        with tabs.add_tab("Muscles", viser.Icon.ADJUSTMENTS):
            self._muscle_form = MuscleForm(gui, session, run)
        with tabs.add_tab("Surfaces", viser.Icon.SPHERE):
            self._surface_form = SurfaceForm(gui, session, run)
        with tabs.add_tab("Pose", viser.Icon.RUN):
            self.pose_form = PoseForm(gui, session, run)
        with tabs.add_tab("Check", viser.Icon.CHECKS):
            LoadForm(gui, session, run)
            self._summary = gui.add_html("")
        with tabs.add_tab("View", viser.Icon.EYE):
            DrawingPanel(
                gui,
                [
                    ("Muscles", True, self._edit.set_muscles_visible),
                    ("Wrap surfaces", True, self._edit.set_surfaces_visible),
                    ("Translucent links", False, self._set_translucent),
                    ("Ground", True, self._nodes.set_grid_visible),
                ],
            )
            self._add_camera_button()
        self.plot_panel = panel = gui.add_panel()
        with panel.add_tab("Moment arms", viser.Icon.CHART_LINE):
            self._charts = ArmCharts(gui, session.tree)
        panel.dock_left()
        panel.set_width(CHARTS_WIDTH)
        for label, key, modifier, action in (
            ("Undo", "Z", "cmd/ctrl", session.undo),
            ("Redo", "Z", "cmd/ctrl+shift", session.redo),
            ("Save", "S", "cmd/ctrl", self.save),
        ):
            command = gui.add_command(label, hotkey=key, modifier=modifier)
            command.on_trigger(lambda _, action=action: run(action))

    def _set_translucent(self, on: bool) -> None:
        """Let muscles inside of links be seen."""
        for shape, handle in self._nodes.shapes:
            handle.opacity = TRANSLUCENT if on else shape.rgba[3]

    def _connect_links(self) -> None:
        links = self.session.editor.links
        for shape, handle in self._nodes.shapes:
            if shape.link is not None:
                self._connect_link(shape, handle, links[shape.link])

    def _connect_link(self, shape: Shape, handle: viser.MeshHandle, link: str) -> None:
        def clicked(event: viser.SceneNodePointerEvent) -> None:
            pose = self.session.link_pose(link) @ shape.pose
            back = pose.inverse()
            origin = back.apply(np.array(event.ray_origin))
            direction = back.rotation @ np.array(event.ray_direction)
            hit = first_hit(origin, direction, shape.vertices, shape.faces)
            if hit is not None:
                self._run_command(lambda: self.session.click_link(link, pose.apply(hit)))

        handle.on_click(clicked)

    def save(self) -> None:
        """Save, and say where. Raises `CardsError` or `OSError`."""
        try:
            saved = self.session.save()
        except OSError as error:
            raise CardsError(f"{error.filename}: {error.strerror}: not saved") from error
        said = f"saved {saved.file}"
        if saved.meshes:
            said += f" and {saved.meshes} mesh{'' if saved.meshes == 1 else 'es'} beside it"
        if saved.backup is not None:
            said += f"; before: {saved.backup.name}"
        if saved.foreign:
            said += ", with changes of another program that this file does not have"
        self.say(said)

    # Page -------------------------------------------------------------------------------------

    def camera(self, aspect: float) -> Camera:
        """Return the camera that lets the robot fill a picture of this aspect."""
        return self._nodes.camera(aspect)

    def _make_scene_plain(self, client: viser.ClientHandle) -> None:
        super()._make_scene_plain(client)
        self._nodes.make_plain(client)

    @property
    def size(self) -> float:
        """Extent of the robot, [m]."""
        return self.scene.size

    def stop(self) -> None:
        """Close the page and free the port."""
        self._ended.set()
        self._wake.set()
        self._analyst.join(timeout=5.0)
        super().stop()

    def _tell(self, view: EditorView) -> None:
        """Let a new view be drawn and analysed."""
        self.show(view)
        self._asked.put(view)
        self._wake.set()

    def _take(self, snapshot: EditorView) -> None:
        """Find the paths of a view."""
        poses = self.session.poses
        if poses is not self._drawn_poses:
            self._paths.clear()
            self._drawn_poses = poses
        paths = [self._path(snapshot, muscle) for muscle in snapshot.robot.muscles]
        there = {id(muscle) for muscle in snapshot.robot.muscles}
        self._paths = {key: value for key, value in self._paths.items() if key in there}
        self._drawn = drawn_muscles(snapshot, self.session, paths)
        self._link_poses = poses.link_poses(0)
        self._view = snapshot
        self._scene_due = self._texts_due = True

    def _path(self, view: EditorView, muscle: Muscle) -> Array:
        """Return the path of a muscle; straight from point to point where none is found."""
        surfaces = {surface.name: surface for surface in view.robot.wrap_surfaces}
        used = [surfaces.get(i.surface) for i in muscle.path if isinstance(i, Wrap)]
        known = self._paths.get(id(muscle))
        if known is None or known[1] != used:
            try:
                path = self._drawn_poses.drawn(view.robot, muscle, 0)
            except CardsError as error:
                LOG.warning("%s", error)
                path = straight_path(self.session, muscle)
            # the muscle is kept with its path, so that nothing else gets its id
            known = self._paths[id(muscle)] = muscle, used, path
        return known[2]

    # Analysis ---------------------------------------------------------------------------------

    def _analyse(self) -> None:
        """Analyse the newest view as often as results are shown; keep what is not saved."""
        seen, kept = 0, time.monotonic()
        while not self._ended.is_set():
            self._wake.wait(KEEP_PERIOD)
            self._wake.clear()
            count, view = self._asked.get()
            if view is not None and count != seen:
                seen, begin = count, time.monotonic()
                try:
                    if not np.array_equal(self._live.q, view.q):
                        self._live.pose(view.q)
                    self.result = self._live.analyse(view.robot, view.load)
                    self.problem = ""
                except CardsError as error:
                    self.problem = str(error)
                except Exception as error:  # the editor must survive an analysis that fails
                    LOG.exception("analysis failed")
                    self.problem = f"analysis failed: {error}"
                self.analyses += 1
                self.show(self._asked.get()[1] or view)
                # what comes meanwhile is analysed then, the newest of it
                self._ended.wait(max(0.0, begin + self.texts_every - time.monotonic()))
            if time.monotonic() - kept > KEEP_PERIOD:
                kept = time.monotonic()
                self._keep_unsaved()

    def _keep_unsaved(self) -> None:
        try:
            self.session.keep_unsaved()
        except OSError as error:
            text = f"unsaved changes cannot be kept: {error.filename}: {error.strerror}"
            if text != self._complaint:
                self._complaint = text
                LOG.warning("%s", text)
                self.notify(text)

    # Drawing ----------------------------------------------------------------------------------

    def _draw_scene(self) -> None:
        if self._drawn is not None:
            self._nodes.draw_links(self._link_poses)
            self._edit.draw(self._drawn)

    def _draw_texts(self) -> None:
        view = self._view
        self._mode.value = view.mode
        name = self.session.editor.file.name
        self._status.content = status_html(view, name, self.problem)
        if not view.dragging:
            self._muscle_form.draw(view)
            self._surface_form.draw(view)
        if (result := self.result) is not None:
            self._charts.draw(result, view.selection.muscle)
            self._summary.content = summary_html(result, view.selection.muscle)


def status_html(view: EditorView, file: str, problem: str) -> str:
    """Return what is edited, what is not saved, and what the next click does.

    Args:
        view: What there is.
        file: Name of the file.
        problem: What could not be analysed; empty if nothing.
    """
    mark = "unsaved changes" if view.unsaved else "saved"
    color = "#e07b1a" if view.unsaved else "#2d8f5a"
    undo = f"undo: {view.undoable}" if view.undoable else ""
    redo = f"redo: {view.redoable}" if view.redoable else ""
    hint = {
        ADD_POINT: "click on links to add points; on a wrap surface to wrap over it",
        ADD_SURFACE: "click on a link to put a wrap surface there",
    }.get(view.mode, "click on a point or a wrap surface, drag its arrows")
    wrong = view.message or problem
    lines = [
        f"<b>{escape(file)}</b> <span style='color:{color}'>{mark}</span>",
        f"<span style='color:#555'>{escape(hint)}</span>",
        f"<span style='color:#888'>{escape(' · '.join(filter(None, (undo, redo))))}</span>",
    ]
    if wrong:
        lines.append(f"<span style='color:#c23b4b'>{escape(wrong)}</span>")
    return (
        '<div style="padding:4px 12px;font-size:12px;line-height:1.5">'
        + "<br>".join(lines)
        + "</div>"
    )
