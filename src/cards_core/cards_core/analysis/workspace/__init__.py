"""Workspaces: where a condition holds, on grids, random samples, rays and points from files.

``result = run(make_job("ipanema_1", "wrench_closure", Grid((Axis("x", -2, 2, 41),))), "folder")``;
see docs/workspace.md.
"""

from cards_core.analysis.workspace.coordinates import PointSetError
from cards_core.analysis.workspace.job import make_job
from cards_core.analysis.workspace.point_file import read_points
from cards_core.analysis.workspace.points import Axis, Grid, PointSet, Samples
from cards_core.analysis.workspace.rays import Rays
from cards_core.analysis.workspace.run import Result, load, resume, run

__all__ = [
    "Axis",
    "Grid",
    "PointSet",
    "PointSetError",
    "Rays",
    "Result",
    "Samples",
    "load",
    "make_job",
    "read_points",
    "resume",
    "run",
]
