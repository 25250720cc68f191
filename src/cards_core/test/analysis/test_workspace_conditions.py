"""What the engine needs of every condition: answers that depend on the points alone."""

import numpy as np
import pytest

from cards_core.analysis.conditions.registry import CONDITIONS, make_condition
from cards_core.analysis.status import PointStatus
from cards_core.analysis.workspace.chunks import evaluate_points, pack
from cards_core.dynamics import make_dynamics
from cards_core.formats import load

ROBOTS = ("planar_xy", "bm_arm")


@pytest.fixture(scope="module", params=ROBOTS)
def robot(request):
    return load(request.param)


@pytest.mark.parametrize("name", CONDITIONS)
def test_answers_do_not_depend_on_what_was_asked_before(robot, name):
    """Else results would depend on the number of workers."""
    dynamics = make_dynamics(robot)
    rng = np.random.default_rng(2)
    q = np.array([dynamics.tree.random(rng) for _ in range(40)])
    condition = make_condition(dynamics, name)
    first = pack("", 0, condition.evaluate(q))
    condition.evaluate(np.array([dynamics.tree.random(rng) for _ in range(7)]))
    assert pack("", 0, condition.evaluate(q)) == first
    other = make_condition(make_dynamics(robot), name)
    assert pack("", 0, other.evaluate(q)) == first


@pytest.mark.parametrize("name", CONDITIONS)
def test_columns_are_what_they_say(robot, name):
    dynamics = make_dynamics(robot)
    condition = make_condition(dynamics, name)
    assert condition.name == name
    assert condition.columns[0].name == "status"
    q = np.tile(dynamics.tree.home, (3, 1))
    q[1, 0] = np.nan
    table = evaluate_points(condition, dynamics.tree, q)
    assert list(table) == [column.name for column in condition.columns]
    for column in condition.columns:
        assert table[column.name].dtype == column.dtype
    assert table["status"][1] == PointStatus.NOT_FINITE
    known = {int(status) for status in PointStatus}
    assert set(table["status"].tolist()) <= known
