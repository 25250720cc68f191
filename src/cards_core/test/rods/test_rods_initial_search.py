"""First states: every shipped robot, random reachable poses, buckled and singular robots."""

from dataclasses import replace
from functools import cache

import numpy as np
import pytest
import rod_oracle

from cards_core.errors import RodError
from cards_core.formats.locate import known_models
from cards_core.rods.robots.initial_guess import hermite_guess
from cards_core.rods.robots.reader import read_rod_robot
from cards_core.rods.robots.robot import Base, BaseKind, Tip, TipKind
from cards_core.rods.robots.solver import RodRobotSolver
from cards_core.rods.status import RodStatus
from cards_core.rods.tracking.continuation import Bounds, StepAcceptance, follow
from cards_core.rods.tracking.initial_search import find_equilibrium, home_equilibrium
from cards_core.rods.tracking.levenberg_marquardt import Equations, levenberg_marquardt
from cards_core.rods.tracking.search_methods import Budget
from cards_core.rods.tracking.targets import Target, pose_difference

ROBOTS = known_models(rods=True)
PATIENT = Budget(work=1_000_000)


@cache
def solver_of(name):
    return RodRobotSolver(read_rod_robot(name))


def reachable(name, count, rng):
    """Equilibria that the robot reaches from home, stable all the way, no rod beyond yield.

    Random joints inside the limits are approached; where the way ends before (collapse, yield), a
    random point of it is taken.
    """
    solver = solver_of(name)
    robot, start = solver.robot, home_equilibrium(solver).solution
    acceptance = StepAcceptance(robot, Bounds(stop_fraction=0.01), start.min_eigenvalue)
    limit = min(limb.rod.yield_strain for limb in robot.limbs)
    wrench = np.array(robot.wrench)
    origin = Target(start.q, None, wrench)
    found = []
    while len(found) < count:
        q = rng.uniform(robot.q_lower, robot.q_upper)
        states = []
        follow(solver, start, origin, Target(q, None, wrench), acceptance, visit=states.append)
        bent = [float(solver.strains(state, 13).max()) for state in states]
        good = [state for state, strain in zip(states, bent, strict=True) if strain < limit]
        if good:
            whole = np.allclose(good[-1].q, q)
            found.append(good[-1] if whole else good[int(rng.integers(len(good)))])
    return found


@pytest.mark.parametrize("name", ROBOTS)
def test_the_home_state_is_an_equilibrium_by_independent_integration(name):
    solver = solver_of(name)
    found = home_equilibrium(solver)
    assert found.status is RodStatus.OK
    assert found.solution.min_eigenvalue > 0.0
    rows = rod_oracle.residual(solver.robot, found.solution, solver.robot.wrench)
    assert np.abs(rows).max() < 1e-5  # tolerance 1e-6 and what 3 steps per rod leave


def test_random_reachable_poses_are_solved():
    rng = np.random.default_rng(6)
    solved, failed = 0, []
    for name in ROBOTS:
        for state in reachable(name, 10, rng):
            result = find_equilibrium(solver_of(name), pose=state.pose, budget=PATIENT)
            if result.status is RodStatus.OK:
                solved += 1
                robot, q = solver_of(name).robot, result.solution.q
                assert (q >= robot.q_lower - 1e-9).all()
                assert (q <= robot.q_upper + 1e-9).all()
                assert result.solution.min_eigenvalue > 0.0
            else:
                assert result.message
                failed.append((name, result.status.name))
    assert len(failed) <= 0.01 * (solved + len(failed)), failed


@pytest.mark.parametrize("name", ["stewart_6pfs", "stewart_gough", "planar_rfr_fr"])
def test_given_joints_lead_to_the_pose_that_home_leads_to(name):
    for state in reachable(name, 2, np.random.default_rng(2)):
        result = find_equilibrium(solver_of(name), q=state.q, budget=PATIENT)
        assert result.status is RodStatus.OK
        assert result.how == "homotopy"
        assert np.abs(pose_difference(result.solution.pose, state.pose)).max() < 1e-6


def test_a_robot_that_stands_elsewhere_starts_alike():
    robot = read_rod_robot("stewart_gough")
    base = rod_oracle.transform(rod_oracle.Rotation.from_rotvec([0.3, -0.8, 0.5]).as_matrix(),
                                (1.0, 2.0, -0.5))  # fmt: skip
    there = RodRobotSolver(robot, base=base, gravity=base[:3, :3] @ robot.gravity)
    pose = robot.home_pose
    pose[:3, 3] += (0.05, -0.03, 0.02)
    expected = find_equilibrium(solver_of("stewart_gough"), pose=pose).solution
    found = find_equilibrium(there, pose=base @ pose).solution
    assert found.q == pytest.approx(expected.q, abs=1e-6)


def test_what_cannot_be_spanned_is_unreachable_by_the_missing_length():
    robot = solver_of("stewart_gough").robot
    pose = robot.home_pose
    pose[2, 3] = 1.0
    result = find_equilibrium(solver_of("stewart_gough"), pose=pose)
    assert result.status is RodStatus.UNREACHABLE
    assert result.solution is None
    ways = []
    for limb in robot.limbs:
        tip = (pose @ limb.tip.joint_pose)[:3, 3]
        ways.append(float(np.linalg.norm(tip - (limb.base.joint_pose @ limb.base.attach)[:3, 3])))
    worst = result.findings[0]
    assert worst.missing == pytest.approx(max(ways) - 0.8, abs=1.1e-3)  # a thousandth of stretch
    assert robot.limbs[worst.limb].name in result.message
    assert f"{1e3 * worst.missing:.1f} mm" in result.message


def test_a_joint_that_would_have_to_leave_its_limits_is_named_without_claiming_a_proof():
    robot = solver_of("stewart_6pff").robot
    pose = robot.home_pose
    pose[:3, 3] += (0.01, 0.0, 0.02)
    wanted = solver_of("stewart_6pff").igm(
        pose, start=home_equilibrium(solver_of("stewart_6pff")).solution
    )
    far = int(np.argmax(wanted.q))
    limbs = list(robot.limbs)
    limbs[far] = replace(
        limbs[far], base=replace(limbs[far].base, upper=float(wanted.q[far]) - 0.003)
    )
    result = find_equilibrium(RodRobotSolver(replace(robot, limbs=tuple(limbs))), pose=pose)
    assert result.status is RodStatus.UNREACHABLE
    assert result.best.q == pytest.approx(wanted.q, abs=1e-5)
    assert result.findings[0].limb == far
    assert result.findings[0].missing == pytest.approx(0.003, abs=1e-5)
    assert f"limb '{limbs[far].name}' lacks 3.00 mm" in result.message
    assert "proves nothing" in result.message


def test_bad_commands_are_answered():
    solver = solver_of("stewart_gough")
    for command, status in (
        ({"q": np.zeros(6)}, RodStatus.LIMIT),
        ({"q": np.full(6, np.nan)}, RodStatus.NOT_FINITE),
        ({"q": np.zeros(5)}, RodStatus.INVALID),
        ({"pose": np.zeros((4, 4))}, RodStatus.INVALID),
        ({"pose": np.eye(4), "wrench": np.zeros(6), "frame": "map"}, RodStatus.INVALID),
    ):
        result = find_equilibrium(solver, **command)
        assert result.status is status
        assert result.solution is None
    for function in (home_equilibrium, lambda robot: find_equilibrium(robot, q=np.zeros(6))):
        with pytest.raises(RodError, match="solver is of type RodRobot; expected a RodRobotSol"):
            function(solver.robot)


def column(mass, bulge=None):
    """One planar rod, clamped below, with a plate of some mass on its top."""
    robot = read_rod_robot("planar_3rfr")
    up = np.eye(4)
    up[:3, :3] = np.array([[0.0, 0.0, 1.0], [1.0, 0.0, 0.0], [0.0, 1.0, 0.0]]).T
    limb = replace(
        robot.limbs[0],
        name="column",
        length=0.5,
        bulge=bulge,
        base=Base(BaseKind.FIXED, np.eye(4), up, 0.0, 0.0),
        tip=Tip(TipKind.FIXED, np.eye(4), up),
    )
    material = replace(limb.rod.material, density=0.0, yield_strain=None)
    rod = replace(limb.rod, material=material)
    pose = rod_oracle.transform(translation=(0.0, 0.45, 0.0))  # nearer than the rod is long
    plate = replace(robot.plate, mass=mass, com=np.zeros(3), pose=pose)
    return replace(
        robot,
        limbs=(replace(limb, rod=rod),),
        plate=plate,
        gravity=np.array([0.0, -9.81, 0.0]),
        initial_pose=None,
        initial_q=None,
        controlled=(),
    )


# elastica: load over Euler's, height and sideways way over the length
@pytest.mark.parametrize(
    ("ratio", "height", "aside"),
    [(1.1517, 0.7410, 0.5932), (1.5184, 0.3490, 0.7915), (2.5423, -0.1069, 0.7504)],
)
def test_a_column_above_its_euler_load_buckles_as_the_elastica(ratio, height, aside):
    rod = column(1.0).limbs[0].rod
    critical = np.pi**2 * float(rod.stiffness_bt[0]) / (4.0 * 0.5**2)
    result = home_equilibrium(RodRobotSolver(column(ratio * critical / 9.81)))
    assert result.status is RodStatus.AMBIGUOUS
    assert "column" in result.message
    assert len(result.alternatives) == 1
    place = result.solution.pose[:2, 3] / 0.5
    assert np.abs(place) == pytest.approx([aside, abs(height)], abs=1e-3)
    assert place[1] == pytest.approx(height, abs=1e-3)
    assert result.alternatives[0].pose[0, 3] == pytest.approx(-0.5 * place[0], abs=1e-5)


@pytest.mark.parametrize("side", [1.0, -1.0])
def test_a_declared_bulge_decides(side):
    result = home_equilibrium(RodRobotSolver(column(0.2, np.array([side, 0.0, 0.0]))))
    assert result.status is RodStatus.OK
    assert side * result.solution.pose[0, 3] > 0.1


def stewart(name, place):
    """A shipped robot with its plate's joints at other places."""
    robot = read_rod_robot(name)
    limbs = []
    for limb in robot.limbs:
        joint = limb.tip.joint_pose.copy()
        joint[:3, 3] = place(limb)
        limbs.append(replace(limb, tip=replace(limb.tip, joint_pose=joint)))
    return replace(robot, limbs=tuple(limbs))


def test_straight_parallel_rods_without_load_are_a_singular_point():
    robot = stewart("stewart_gough", lambda limb: (limb.base.joint_pose @ limb.base.attach)[:3, 3])
    robot = replace(robot, gravity=np.zeros(3))
    result = find_equilibrium(RodRobotSolver(robot), pose=robot.home_pose)
    assert result.status is RodStatus.SINGULAR
    assert result.singular_value < 1e-10
    assert f"{result.singular_value:.1e}" in result.message
    assert result.solution.q == pytest.approx(np.full(6, 0.4), abs=1e-6)


def test_a_plate_that_can_spin_is_rank_deficient():
    robot = stewart("stewart_6pfs", lambda limb: (0.0, 0.0, 0.0))  # all balls at one point
    result = find_equilibrium(RodRobotSolver(robot), q=np.zeros(6))
    assert result.status is RodStatus.SINGULAR
    assert "turns about" in result.message


class Cliff(Equations):
    """Wherever it is asked next, the residual is finite, its square is not."""

    asked = 0

    def linearise(self, state):
        r, J = super().linearise(state)
        self.asked += 1
        return (r if self.asked == 1 else np.full_like(r, 1e200)), J


@pytest.mark.filterwarnings("error")
def test_a_step_of_infinite_cost_is_refused_without_a_warning():
    solver = solver_of("stewart_6efr")
    robot = solver.robot
    equations = Cliff(solver, False, np.array(robot.wrench), robot.wrench_frame)
    start = hermite_guess(robot, robot.home_pose)
    descent = levenberg_marquardt(equations, start, iterations=4)
    assert equations.asked == 4
    assert descent.guess is start
