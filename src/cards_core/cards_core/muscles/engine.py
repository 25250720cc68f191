"""The muscle engine: link motion and tensions in, lengths, rates and one wrench per link out.

The same engine serves every host (embedded simulator, Gazebo, hardware estimation): the host
fetches link poses and twists, calls `MuscleEngine.update` and applies the wrenches.

A muscle is a polyline of path points (`cards_core.paths.layout`): via points, and the tangent
points of the surfaces it wraps over. Per straight piece from A to B with unit vector ``u`` and
tension ``f``:

    length += |B - A|,   rate += u . (v_B - v_A),   force on A's link: f u, on B's link: -f u

with v the velocity of the point of the link that is at A or B now. Arcs on a surface add their
length and nothing else: the shortest path is stationary, so the motion of its tangent points along
the surface changes no length (envelope theorem). The forces and moments of every muscle sum to
zero, with or without friction, and without friction ``tau = -L' f``.

Cables with ``contact`` have their contacts from `cards_core.paths.contacts`, by the same formulas.
Their state is that of the last poses: hosts give poses in the order of time. What they touch may
be links of other models, the neighbours: a host that has them fills in their motion before each
call, and applies what the cables do to them.

Capstan friction over via points and surfaces makes the tension differ from piece to piece
(`cards_core.paths.numeric.Paths.friction_factors`); ``f`` is the tension at the origin, where the
actuator sits.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from typing import get_args

import numpy as np

from cards_core.checks import check_choice
from cards_core.codegen.kernel import Kernel
from cards_core.codegen.model import BoundKernel
from cards_core.codegen.native import load_or_build
from cards_core.paths.contacts.of_robot import contact_cables
from cards_core.paths.drawing import drawn_paths
from cards_core.paths.layout import link_layout
from cards_core.paths.numeric import Paths
from cards_core.paths.wrapping.geodesic_paths import GeodesicPaths
from cards_core.robot.elements import Collision, Link
from cards_core.robot.model import Robot
from cards_core.typing import Array, Backend


class MuscleState:
    """Result of `MuscleEngine.update`. The arrays are overwritten by the next update.

    With m muscles and n links in the order of ``robot.links``:

    Attributes:
        lengths: shape (m,), [m].
        rates: shape (m,), [m/s].
        tensions: At the origin of every muscle, shape (m,), [N].
        wrenches: On every link, shape (n, 6): force [N], then torque [Nm] about the link's
            origin, both in world axes.
        world_wrench: On the world, about its origin, shape (6,): closes the balance.
    """

    def __init__(self, n_links: int, n_muscles: int) -> None:
        self.lengths: Array = np.zeros(n_muscles)
        self.rates: Array = np.zeros(n_muscles)
        self.tensions: Array = np.zeros(n_muscles)
        self.wrenches: Array = np.zeros((n_links, 6))
        self.world_wrench: Array = np.zeros(6)


class MuscleEngine:
    """Muscle paths of a robot.

    Args:
        robot: The description; its joints do not matter.
        backend: ``compiled`` (native code, cached) or ``numeric`` (NumPy, the reference).
        surroundings: What does not move and cables with ``contact`` touch, in the world.
        neighbours: Links of other models that these cables touch.

    Attributes:
        robot: As given.
        neighbour_poses: Of the neighbours now, set by the host, shape (k, 4, 4).
        neighbour_twists: Their velocities, in world axes as those of the links, shape (k, 6).
        neighbour_wrenches: What the cables do to them, as of the last `update`, shape (k, 6),
            about their origins.
        layout: Its paths as tables; frames are the links.
        mobility: Time step of the host by the mass that each muscle feels, shape (m,), [s/kg]: how
            smooth friction has to be, see `cards_core.paths.numeric`. Zero, i.e. as smooth as
            described, until a host sets it.
        contacts: The cables with ``contact``, in the order of the muscles; None without any.
        touching: The indices of these muscles.
        keeps_twists: Set by the host: links that these cables touch or hold keep their twists
            while they move from step to step, so that those at the new poses are the ones to
            which the forces led; see `ContactCables.solve`.
        straight_update: As `update`, with cables with ``contact`` straight.
        motion_kernel, pull_kernel: Of lengths and rates, and of the wrenches too; None where NumPy
            computes them. Cables with ``contact`` count as straight there.

    Raises:
        DescriptionError: A path that cannot be; see `cards_core.paths.layout.layout_of` and
            `cards_core.paths.contacts.of_robot`.
    """

    def __init__(
        self,
        robot: Robot,
        backend: Backend = "compiled",
        surroundings: Sequence[Collision] = (),
        neighbours: Sequence[Link] = (),
    ) -> None:
        check_choice(backend, "backend", get_args(Backend))
        self.robot = robot
        self.layout = link_layout(robot)
        self._geodesics = None
        if len(self.layout.geodesics):
            self._geodesics = GeodesicPaths(robot, backend)
        self._paths = Paths(self.layout, self._geodesics)
        self._solved_poses = np.full((len(robot.links), 4, 4), np.nan)
        self._solved_rows: Array | None = None
        n_links = len(robot.links)
        self._poses = np.zeros((n_links + 1, 4, 4))
        self._poses[-1] = np.eye(4)
        self._twists = np.zeros((n_links + 1, 6))
        self._wrenches = np.zeros((n_links + 1, 6))
        self._state = MuscleState(n_links, len(robot.muscles))
        self.mobility: Array = np.zeros(len(robot.muscles))
        self.motion_kernel: BoundKernel | None = None
        self.pull_kernel: BoundKernel | None = None
        self.update = self._update_numeric
        self.motion = self._motion_numeric
        if backend == "compiled":
            self._bind_native()
        self.straight_update = self.update
        self.touching, self.contacts = contact_cables(robot, surroundings, neighbours)
        near = len(neighbours)
        self._contact_poses = np.tile(np.eye(4), (n_links + near + 1, 1, 1))
        self._contact_twists = np.zeros((n_links + near + 1, 6))
        self.keeps_twists = False
        self.neighbour_poses: Array = self._contact_poses[n_links:-1]
        self.neighbour_twists: Array = self._contact_twists[n_links:-1]
        self.neighbour_wrenches: Array = np.zeros((near, 6))
        if self.contacts is not None:
            self._straight_tensions = np.zeros(len(robot.muscles))
            self._solved_contacts = b""
            self._straight_motion = self.motion
            self.update, self.motion = self._update_contacts, self._motion_contacts

    def _bind_native(self) -> None:
        content = hashlib.sha256(b"muscle engine 2" + self.layout.content()).digest()
        model = load_or_build(content, self._kernels)
        kernel, motion = model.bind("muscles"), model.bind("motion")
        self.pull_kernel, self.motion_kernel = kernel, motion
        state = self._state
        state.lengths = kernel.outputs["lengths"]
        state.rates = kernel.outputs["rates"]
        wrenches = kernel.outputs["wrenches"]
        state.wrenches, state.world_wrench = wrenches[:-1], wrenches[-1]
        state.tensions = kernel.inputs["tensions"]
        self.mobility = kernel.inputs.get("mobility", self.mobility)
        self.update = self._update_native
        self.motion = self._motion_native

    def _kernels(self) -> Sequence[Kernel]:
        # casadi takes 0.3 s to import and is not needed when the code is cached
        from cards_core.paths.symbolic import muscle_kernels

        return muscle_kernels(self.layout)

    @property
    def failures(self) -> int:
        """Contacts that could not be solved since the last reset; guesses took their place."""
        geodesics = 0 if self._geodesics is None else self._geodesics.failures
        return geodesics + (0 if self.contacts is None else self.contacts.failures)

    def reset(self) -> None:
        """Forget warm starts: what comes next depends on nothing that was before."""
        if self._geodesics is not None:
            self._geodesics.reset()
            self._solved_poses[:] = np.nan
        if self.contacts is not None:
            self.contacts.reset()
            self._solved_contacts = b""

    def _geodesic_rows(self, link_poses: Array) -> Array | None:
        """Return the contacts without a closed form; solved once for each set of poses.

        A host asks several times for the same instant: lengths, then wrenches, then the state.
        """
        if self._geodesics is not None and not np.array_equal(link_poses, self._solved_poses):
            self._solved_rows = self._geodesics.solve(link_poses)
            self._solved_poses[:] = link_poses
        return self._solved_rows

    # Native -----------------------------------------------------------------------------------

    def _motion_native(self, link_poses: Array, link_twists: Array) -> tuple[Array, Array]:
        kernel = self.motion_kernel
        assert kernel is not None
        inputs, outputs = kernel.inputs, kernel.outputs
        inputs["poses"][:] = link_poses
        inputs["twists"][:] = link_twists
        if self._geodesics is not None:
            inputs["contacts"][:] = self._geodesic_rows(link_poses)
        kernel.call()
        return outputs["lengths"], outputs["rates"]

    def _update_native(
        self, link_poses: Array, link_twists: Array, tensions: Array
    ) -> MuscleState:
        kernel = self.pull_kernel
        assert kernel is not None
        inputs = kernel.inputs
        inputs["poses"][:] = link_poses
        inputs["twists"][:] = link_twists
        inputs["tensions"][:] = tensions
        if self._geodesics is not None:
            inputs["contacts"][:] = self._geodesic_rows(link_poses)
        kernel.call()
        return self._state

    # Cables that touch ------------------------------------------------------------------------

    def _pull_contacts(self, link_poses: Array, link_twists: Array, tensions: Array) -> Array:
        """Return the wrenches of cables that touch; contacts advance once for each pose."""
        assert self.contacts is not None
        count = len(self.robot.links)
        self._contact_poses[:count] = link_poses
        self._contact_twists[:count] = link_twists
        key = self._contact_poses.tobytes()
        if key != self._solved_contacts:
            reached = self._contact_twists if self.keeps_twists else None
            self.contacts.solve(self._contact_poses, reached)
            self._solved_contacts = key
        return self.contacts.pull(self._contact_twists, tensions)

    def contacts_are_solved(self) -> None:
        """Take note that somebody advanced the contacts to the poses that they have now."""
        assert self.contacts is not None
        self._solved_contacts = self.contacts.solved_poses.tobytes()

    def _motion_contacts(self, link_poses: Array, link_twists: Array) -> tuple[Array, Array]:
        lengths, rates = self._straight_motion(link_poses, link_twists)
        assert self.contacts is not None
        self._pull_contacts(link_poses, link_twists, np.zeros(len(self.touching)))
        lengths[self.touching] = self.contacts.lengths
        rates[self.touching] = self.contacts.rates
        return lengths, rates

    def _update_contacts(
        self, link_poses: Array, link_twists: Array, tensions: Array
    ) -> MuscleState:
        assert self.contacts is not None
        touching, straight = self.touching, self._straight_tensions
        straight[:] = tensions
        pulling = straight[touching]
        straight[touching] = 0.0
        state = self.straight_update(link_poses, link_twists, straight)
        wrenches = self._pull_contacts(link_poses, link_twists, pulling)
        count = len(self.robot.links)
        state.wrenches += wrenches[:count]
        state.world_wrench += wrenches[-1]
        self.neighbour_wrenches[:] = wrenches[count:-1]
        state.tensions[touching] = pulling
        state.lengths[touching] = self.contacts.lengths
        state.rates[touching] = self.contacts.rates
        return state

    # NumPy ------------------------------------------------------------------------------------

    def _motion_numeric(self, link_poses: Array, link_twists: Array) -> tuple[Array, Array]:
        """Compute lengths and rates, each shape (m,); arguments as `update`."""
        state = self._update_numeric(link_poses, link_twists, self._state.tensions)
        return state.lengths, state.rates

    def _update_numeric(
        self, link_poses: Array, link_twists: Array, tensions: Array
    ) -> MuscleState:
        """Compute lengths, rates and wrenches.

        Args:
            link_poses: Link-to-world matrices, shape (n, 4, 4).
            link_twists: World velocity of each link's origin, then angular velocity in world
                axes, shape (n, 6), [m/s] and [rad/s].
            tensions: At the origin of every muscle, shape (m,), [N].
        """
        layout = self.layout
        self._solve(link_poses)
        points = self._paths.points
        arms = points - self._poses[layout.point_frame, :3, 3]
        self._twists[:-1] = link_twists
        twists = self._twists[layout.point_frame]
        velocities = twists[:, :3] + np.cross(twists[:, 3:], arms)
        start, end = layout.start, layout.start + 1
        delta = points[end] - points[start]
        length = np.linalg.norm(delta, axis=1)
        u = np.divide(delta, length[:, None], out=np.zeros_like(delta), where=length[:, None] > 0)
        count = len(self.robot.muscles)
        state = self._state
        state.lengths[:] = np.bincount(layout.piece_muscle, length, count)
        for contact, arc in zip(layout.contacts, self._paths.arcs, strict=True):
            state.lengths[contact.muscle] += arc
        rate = np.einsum("ij,ij->i", u, velocities[end] - velocities[start])
        state.rates[:] = np.bincount(layout.piece_muscle, rate, count)
        state.tensions[:] = tensions
        pull = u * state.tensions[layout.piece_muscle, None]
        if layout.friction:
            factors = self._paths.friction_factors(rate, state.tensions, self.mobility)
            pull *= factors[:, None]
        force = np.zeros_like(points)
        np.add.at(force, start, pull)
        np.subtract.at(force, end, pull)
        self._wrenches[:] = 0.0
        np.add.at(self._wrenches[:, :3], layout.point_frame, force)
        np.add.at(self._wrenches[:, 3:], layout.point_frame, np.cross(arms, force))
        state.wrenches[:] = self._wrenches[:-1]
        state.world_wrench[:] = self._wrenches[-1]
        return state

    def _solve(self, link_poses: Array) -> None:
        self._poses[:-1] = link_poses
        rows = self._geodesic_rows(link_poses)
        self._paths.solve(self._poses[:, :3, :3], self._poses[:, :3, 3], rows)

    def path_points(self, link_poses: Array) -> list[Array]:
        """Return the drawn path of every muscle, arrays of shape (k, 3) in the world, [m].

        Arcs are sampled; k does not change from call to call.
        """
        self._solve(link_poses)
        return drawn_paths(self._paths, self._poses)
