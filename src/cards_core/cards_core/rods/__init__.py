"""Cosserat rods: single rods, and parallel robots made of them.

solver = RodRobotSolver(read_rod_robot("stewart_gough"))
state = solver.igm(pose)

One rod is in the modules of this folder, robots in ``robots``, the first state of a robot and its
commands in ``tracking``, motion in ``dynamics``, workspaces and force sensing in ``analysis``.
"""

from cards_core.rods.ends import clamped, free, jointed
from cards_core.rods.loads import DistributedLoad, Loading, PointLoad
from cards_core.rods.robots.reader import read_rod_robot
from cards_core.rods.robots.robot import RodRobot
from cards_core.rods.robots.solver import RodRobotSolver
from cards_core.rods.rod import Material, Rod, Section
from cards_core.rods.stability import conjugate_points_of
from cards_core.rods.statics import solve_rod
from cards_core.rods.tracking.initial_search import find_equilibrium
from cards_core.rods.tracking.targets import moved
from cards_core.rods.tracking.tracker import Tracker

__all__ = [
    "DistributedLoad",
    "Loading",
    "Material",
    "PointLoad",
    "Rod",
    "RodRobot",
    "RodRobotSolver",
    "Section",
    "Tracker",
    "clamped",
    "conjugate_points_of",
    "find_equilibrium",
    "free",
    "jointed",
    "moved",
    "read_rod_robot",
    "solve_rod",
]
