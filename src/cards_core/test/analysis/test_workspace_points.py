"""Point sets: what is made by index equals what NumPy makes at once."""

import json

import numpy as np
import pytest
from workspace_cases import ball_robot, chain_robot

from cards_core.analysis.workspace import Axis, Grid, PointSetError, Rays, Samples, read_points
from cards_core.analysis.workspace.coordinates import Coordinates, rotations
from cards_core.analysis.workspace.job import points_from_json
from cards_core.analysis.workspace.points import uniform_quaternions, uniforms
from cards_core.errors import CardsError, UnknownNameError
from cards_core.spatial import quaternion_log, quaternion_matrix, rotation_exp

RNG = np.random.default_rng(5)


@pytest.fixture(scope="module")
def tree():
    return chain_robot().tree


@pytest.fixture(scope="module")
def ball_tree():
    return ball_robot().tree


AXES = (Axis("slide", -1.0, 2.0, 7), Axis("turn", 0.5, -0.5, 4), Axis("lift", 0.0, 1.0, 5))


def test_a_grid_by_index_is_numpys_meshgrid(tree):
    bound = Grid(AXES).bind(tree)
    mesh = np.meshgrid(*(np.linspace(a.start, a.stop, a.count) for a in AXES), indexing="ij")
    expected = np.column_stack([m.ravel() for m in mesh])
    assert bound.count == len(expected)
    np.testing.assert_array_equal(bound.values(0, bound.count), expected)
    for start, stop in ((0, 1), (17, 64), (139, 140), (50, 50)):
        np.testing.assert_array_equal(bound.values(start, stop), expected[start:stop])
    q = bound.q(expected)
    order = [tree.position_names.index(a.name) for a in AXES]
    np.testing.assert_array_equal(q[:, order], expected)


def test_a_huge_grid_costs_nothing_until_it_is_asked(tree):
    grid = Grid((Axis("slide", 0.0, 1.0, 100_000), Axis("turn", 0.0, 1.0, 100_001)))
    bound = grid.bind(tree)
    assert bound.count == 100_000 * 100_001
    row = bound.values(bound.count - 1, bound.count)
    np.testing.assert_array_equal(row, [[1.0, 1.0]])
    middle = 54_321 * 100_001 + 777
    slide, turn = bound.values(middle, middle + 1)[0]
    assert slide == np.linspace(0.0, 1.0, 100_000)[54_321]
    assert turn == np.linspace(0.0, 1.0, 100_001)[777]


def test_what_does_not_vary_is_fixed_or_at_home(tree):
    bound = Grid((Axis("lift", 0.0, 1.0, 3),), {"turn": 0.25}).bind(tree)
    q = bound.q(bound.values(0, 3))
    np.testing.assert_array_equal(q[:, tree.position_names.index("turn")], 0.25)
    slide = tree.position_names.index("slide")
    np.testing.assert_array_equal(q[:, slide], tree.home[slide])
    assert tree.home[slide] != 0.0


def test_empty_and_single_grids(tree):
    assert Grid((Axis("lift", 0.0, 1.0, 0),)).bind(tree).values(0, 0).shape == (0, 1)
    single = Grid(()).bind(tree)
    assert single.count == 1
    np.testing.assert_array_equal(single.q(single.values(0, 1)), [tree.home])


def test_names_may_be_short_if_they_are_unique(tree):
    names = Coordinates(tree)
    assert names.find("b").name == "arm_b"
    with pytest.raises(PointSetError, match="arm_a or leg_a"):
        names.find("a")
    with pytest.raises(UnknownNameError, match="did you mean 'slide'"):
        names.find("slyde")


def test_mistakes_have_names(tree):
    with pytest.raises(PointSetError, match="at least 2"):
        Axis("lift", 0.0, 1.0, 1)
    with pytest.raises(PointSetError, match="two numbers"):
        Axis("lift", 0.0, np.nan, 3)
    with pytest.raises(PointSetError, match="given twice"):
        Grid((Axis("lift", 0.0, 1.0, 3),), {"lift": 0.1}).bind(tree)
    with pytest.raises(PointSetError, match="the lower one first"):
        Samples(3, ranges={"lift": (1.0, 0.0)})
    with pytest.raises(PointSetError, match=r"at most \d+"):
        Grid(tuple(Axis(name, 0.0, 1.0, 10**6) for name in ("lift", "turn", "slide")))


def test_numbers_that_would_overflow_are_refused():
    with pytest.raises(PointSetError, match=r"at most \d+ along one axis"):
        Axis("lift", 0.0, 1.0, 2**53)
    with pytest.raises(PointSetError, match="two numbers"):
        Axis("lift", -1e308, 1e308, 3)
    with pytest.raises(PointSetError, match="two numbers"):
        Samples(3, ranges={"lift": (-1e308, 1e308)})
    with pytest.raises(PointSetError, match="below 2"):
        Samples(3, seed=2**128)
    with pytest.raises(PointSetError, match="below 2"):
        Rays(Grid(()), seed=2**128)


def test_rotation_vectors_turn_from_home(ball_tree):
    """One component is a rotation about that axis of the body; the formula is scipy's too."""
    from scipy.spatial.transform import Rotation

    grid = Grid((Axis("wrist.rx", -1.0, 1.0, 3), Axis("rz", -2.0, 2.0, 5)))
    bound = grid.bind(ball_tree)
    values = bound.values(0, bound.count)
    q = bound.q(values)
    block = Coordinates(ball_tree).balls["wrist"]
    home = quaternion_matrix(ball_tree.home[block : block + 4])
    assert not np.allclose(home, np.eye(3))
    for row, (x, z) in zip(q, values, strict=True):
        turned = home @ Rotation.from_rotvec([x, 0.0, z]).as_matrix()
        np.testing.assert_allclose(quaternion_matrix(row[block : block + 4]), turned, atol=1e-14)


def test_quaternions_cannot_be_gridded(ball_tree):
    with pytest.raises(PointSetError, match=r"wrist\.rx, wrist\.ry, wrist\.rz"):
        Grid((Axis("wrist.w", 0.0, 1.0, 3),)).bind(ball_tree)


def test_rotations_of_many_are_rotations_of_one():
    vectors = RNG.normal(size=(50, 3)) * np.logspace(-9, 0.5, 50)[:, None]
    expected = [rotation_exp(vector) for vector in vectors]
    np.testing.assert_allclose(rotations(vectors), expected, atol=1e-15, rtol=1e-15)
    np.testing.assert_array_equal(rotations(np.zeros((1, 3))), [[1.0, 0.0, 0.0, 0.0]])


def test_moving_rows_is_the_trees_integration(ball_tree):
    q = np.array([ball_tree.random(RNG) for _ in range(20)])
    v = RNG.normal(size=(20, ball_tree.nv))
    expected = [ball_tree.integrate(a, b) for a, b in zip(q, v, strict=True)]
    np.testing.assert_allclose(Coordinates(ball_tree).move(q, v), expected, atol=1e-15)


def test_samples_depend_on_seed_and_index_alone(ball_tree):
    bound = Samples(1000, seed=3).bind(ball_tree)
    whole = bound.values(0, 1000)
    pieces = [bound.values(a, b) for a, b in ((700, 1000), (0, 1), (1, 333), (333, 700))]
    together = np.concatenate([pieces[1], pieces[2], pieces[3], pieces[0]])
    np.testing.assert_array_equal(together, whole)
    other = Samples(1000, seed=4).bind(ball_tree).values(0, 1000)
    assert not np.any(other == whole)


def test_samples_fill_their_ranges_evenly(tree):
    count = 40_000
    bound = Samples(count, ranges={"lift": (2.0, 6.0)}, fixed={"turn": 0.1}).bind(tree)
    q = bound.q(bound.values(0, count))
    lift = q[:, tree.position_names.index("lift")]
    assert lift.min() >= 2.0
    assert lift.max() < 6.0
    # five standard errors of the share of a tenth of the range
    bound_error = 5.0 * np.sqrt(0.1 * 0.9 / count)
    shares = np.histogram(lift, 10, (2.0, 6.0))[0] / count
    np.testing.assert_allclose(shares, 0.1, atol=bound_error)
    slide = tree.position_names.index("slide")
    assert q[:, slide].min() >= tree.lower[slide]
    assert q[:, slide].max() <= tree.upper[slide]


def test_uniform_numbers_are_philox():
    """Rows are what one generator draws from the beginning, four numbers per step."""
    expected = np.random.Philox(key=9).random_raw(8 * 5)
    table = uniforms(9, 0, 5, 7)
    np.testing.assert_array_equal(table, (expected.reshape(5, 8)[:, :7] >> np.uint64(11)) / 2**53)
    assert table.min() >= 0.0
    assert table.max() < 1.0


def test_random_orientations_are_uniform():
    """Invariant under rotation: the mean rotation matrix vanishes; the angle has its known law.

    P(angle < a) = (a - sin a) / pi on the rotation group.
    """
    count = 40_000
    quaternions = uniform_quaternions(uniforms(1, 0, count, 3))
    np.testing.assert_allclose(np.linalg.norm(quaternions, axis=1), 1.0, atol=1e-15)
    mean = np.mean([quaternion_matrix(q) for q in quaternions[:5000]], axis=0)
    # entries of a uniform rotation matrix have variance 1/3
    np.testing.assert_allclose(mean, 0.0, atol=5.0 * np.sqrt(1.0 / 3.0 / 5000))
    angles = np.array([np.linalg.norm(quaternion_log(q)) for q in quaternions])
    for a in (0.5, 1.5, 2.5):
        p = (a - np.sin(a)) / np.pi
        assert abs(np.mean(angles < a) - p) < 5.0 * np.sqrt(p * (1.0 - p) / count)


def test_samples_need_a_range_where_there_are_no_limits(ball_tree):
    unlimited = chain_robot(limits=False).tree
    with pytest.raises(PointSetError, match="no joint limits to draw from"):
        Samples(3).bind(unlimited)
    fixed = Samples(3, at_home=("wrist",)).bind(ball_tree)
    q = fixed.q(fixed.values(0, 3))
    block = Coordinates(ball_tree).balls["wrist"]
    expected = np.tile(ball_tree.home[block : block + 4], (3, 1))
    np.testing.assert_array_equal(q[:, block : block + 4], expected)


@pytest.mark.parametrize("suffix", ["csv", "parquet", "npz"])
def test_point_files(tmp_path, tree, suffix):
    table = RNG.normal(size=(300, 2))
    table[17, 1] = np.nan
    path = tmp_path / f"points.{suffix}"
    names = ["lift", "slide"]
    if suffix == "csv":
        lines = [",".join("" if np.isnan(v) else repr(v) for v in row) for row in table.tolist()]
        path.write_text("\n".join([",".join(names), *lines]))
    elif suffix == "npz":
        np.savez(path, lift=table[:, 0], slide=table[:, 1])
    else:
        import pyarrow as pa
        import pyarrow.parquet as pq

        columns = {"lift": table[:, 0], "other": np.zeros(300), "slide": table[:, 1]}
        pq.write_table(pa.table(columns), path)
    points = read_points(path, tree, fixed={"turn": 0.5})
    assert points.count == 300
    bound = points.bind(tree)
    np.testing.assert_array_equal(bound.values(10, 20), table[10:20])
    q = bound.q(bound.values(0, 300))
    np.testing.assert_array_equal(q[:, tree.position_names.index("slide")], table[:, 1])
    np.testing.assert_array_equal(q[:, tree.position_names.index("turn")], 0.5)


def test_damaged_parquet_files_are_told_in_one_line(tmp_path, tree):
    """Whatever Arrow finds: in the head, in the names, or only as the rows are read."""
    import pyarrow.parquet

    rng = np.random.default_rng(7)
    path = tmp_path / "points.parquet"
    rows = rng.normal(size=(40, 2))
    pyarrow.parquet.write_table(pyarrow.table({"lift": rows[:, 0], "slide": rows[:, 1]}), path)
    good = path.read_bytes()
    messages = []
    for _ in range(400):
        data = bytearray(good)
        data[-int(rng.integers(1, 1200))] ^= 1 << int(rng.integers(8))
        path.write_bytes(data)
        try:
            read_points(path, tree, fixed={"turn": 0.5})
        except CardsError as error:
            messages.append(str(error))
    assert 100 < len(messages) < 400
    assert not any("\n" in message for message in messages)


def test_point_files_with_quaternions(tmp_path, ball_tree):
    q = np.array([ball_tree.random(RNG) for _ in range(8)])
    np.savez(tmp_path / "q.npz", q=q)
    bound = read_points(tmp_path / "q.npz", ball_tree).bind(ball_tree)
    np.testing.assert_allclose(bound.q(bound.values(0, 8)), q, atol=1e-15)
    block = Coordinates(ball_tree).balls["wrist"]
    q[5, block : block + 4] *= 1.1
    np.savez(tmp_path / "q.npz", q=q)
    with pytest.raises(PointSetError, match=r"row 6: the quaternion of 'wrist' has length 1\.1"):
        read_points(tmp_path / "q.npz", ball_tree)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("lift,slyde\n1,2\n", "did you mean 'slide'"),
        ("lift,slide\n1,2\n1,x\n", ":3: slide is 'x'"),
        ("lift,slide\n1\n", "points.csv:2: 1 values .expected: 2"),
        ("lift,slide\n1,2,3\n", "points.csv:2: 3 values .expected: 2"),
        ("lift,lift\n1,2\n", "there twice"),
        ("", "is empty"),
    ],
)
def test_wrong_point_files(tmp_path, tree, text, message):
    path = tmp_path / "points.csv"
    path.write_text(text)
    with pytest.raises(CardsError, match=message):
        read_points(path, tree)


def test_other_wrong_point_files(tmp_path, tree):
    with pytest.raises(PointSetError, match="no such file"):
        read_points(tmp_path / "none.csv", tree)
    (tmp_path / "points.txt").write_text("")
    with pytest.raises(PointSetError, match="unknown kind"):
        read_points(tmp_path / "points.txt", tree)
    for suffix, error in (("parquet", PointSetError), ("npz", CardsError)):
        (tmp_path / f"points.{suffix}").write_bytes(b"not at all")
        with pytest.raises(error, match=suffix):
            read_points(tmp_path / f"points.{suffix}", tree)
    np.savez(tmp_path / "q.npz", q=np.zeros((4, 2)))
    with pytest.raises(PointSetError, match=r"shape \(4, 2\)"):
        read_points(tmp_path / "q.npz", tree)


@pytest.mark.parametrize(
    "points",
    [
        Grid(AXES, {"arm_b": 0.5}),
        Samples(10, 4, {"lift": (0.0, 1.0)}, {"turn": 0.1}, ("slide",)),
    ],
)
def test_json_and_back(tree, points):
    again = points_from_json(json.loads(json.dumps(points.to_json())))
    assert again == points
    np.testing.assert_array_equal(again.bind(tree).values(3, 7), points.bind(tree).values(3, 7))


def test_the_table_of_a_point_analysis_is_a_point_file(tmp_path):
    """Its coordinates are marked; text and tensions beside them are passed over."""
    tree = chain_robot().tree
    names = tree.position_names
    head = ",".join(["time", "status", *(f"q/{name}" for name in names), "f/cable"])
    rows = [[0.1 * (i + j) for j in range(len(names))] for i in range(3)]
    lines = [f"0.0,FEASIBLE,{','.join(map(str, row))},17.0" for row in rows]
    file = tmp_path / "id.csv"
    file.write_text("\n".join([head, *lines]) + "\n")
    points = read_points(file, tree).bind(tree)
    assert points.count == 3
    np.testing.assert_array_equal(points.values(0, 3), rows)
    file.write_text("\n".join([head, lines[0].removesuffix(",17.0")]) + "\n")
    with pytest.raises(CardsError, match=r":2: .* values"):
        read_points(file, tree)
