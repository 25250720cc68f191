import matplotlib as mpl
import numpy as np
import pytest

from cards_viz.colors import LINE_COLORS
from cards_viz.labels import numbered, operational_labels
from cards_viz.plots import drawing
from cards_viz.plots import runs as plots

TIME = np.linspace(0.0, 3.0, 301)
XYZ = operational_labels(("x", "y", "z"))


def circle():
    return np.column_stack([np.cos(TIME), np.full(301, -0.45), np.sin(TIME)])


def data(axis):
    """Return what the lines of a chart show, x and y of each."""
    return [(list(line.get_xdata()), list(line.get_ydata())) for line in axis.lines]


def test_tracking_labels_units_and_scale():
    error = np.full((301, 3), 0.0)
    error[:, 0], error[7, 1] = 0.002, -3e-6
    figure = plots.tracking(TIME, circle() + error, circle(), error, labels=XYZ, title="t")
    labels = [axis.get_ylabel() for axis in figure.axes]
    assert labels == ["x [m]", "error [mm]", "y [m]", "error [µm]", "z [m]", "error [µm]"]
    np.testing.assert_allclose(figure.axes[1].lines[1].get_ydata(), 2.0)
    assert figure.axes[3].lines[1].get_ydata()[7] == pytest.approx(-3.0)
    assert figure.axes[3].texts[0].get_text() == "max |e| = 3 µm"
    # y does not move: its axis must not magnify the last micrometre
    moving = np.ptp(figure.axes[0].get_ylim())
    assert np.ptp(figure.axes[2].get_ylim()) >= 0.099 * moving


def test_tracking_with_an_error_of_another_size():
    """A quaternion has four coordinates and three errors."""
    q = np.tile([1.0, 0.0, 0.0, 0.0], (301, 1))
    figure = plots.tracking(TIME, q, q, np.zeros((301, 3)), labels=numbered(4, 3), title="t")
    shown = [axis for axis in figure.axes if axis.get_visible()]
    assert [axis.get_ylabel() for axis in shown] == [
        "y1", "error e1", "y2", "error e2", "y3", "error e3", "y4",
    ]  # fmt: skip


def test_flat_path_is_drawn_in_its_plane():
    figure = plots.path(circle(), circle() + 1e-4, XYZ.names, "t")
    assert len(figure.axes) == 2  # one view and the scale
    assert figure.axes[0].get_xlabel() == "x [m]"
    assert figure.axes[0].get_ylabel() == "z [m]"
    (lines,) = figure.axes[0].collections
    np.testing.assert_allclose(lines.get_array(), 1e-4 * np.sqrt(3.0) * 1e3)
    assert figure.axes[1].get_ylabel() == "distance actual to desired [mm]"


def test_other_paths_are_drawn_in_three_views():
    helix = np.column_stack([np.cos(TIME), np.sin(TIME), 0.1 * TIME])
    figure = plots.path(helix, helix, XYZ.names, "t")
    views = [(axis.get_xlabel(), axis.get_ylabel()) for axis in figure.axes[:3]]
    assert views == [("x [m]", "y [m]"), ("x [m]", "z [m]"), ("y [m]", "z [m]")]


@pytest.mark.parametrize(("upper", "note"), [(100.0, ""), (5000.0, "max 5000 N"), (np.inf, "")])
def test_tension_limits(upper, note):
    values = 30.0 + 20.0 * np.sin(TIME[:, None] + np.arange(11))
    names = [f"motor{i}" for i in range(11)]
    figure = plots.tensions(TIME, values, names, np.full(11, 10.0), np.full(11, upper))
    over, under = figure.axes[:2]
    assert over.get_legend().get_texts()[10].get_text() == "motor10"
    assert note in over.get_title(loc="right")
    assert bool(note) == bool(over.get_title(loc="right"))
    drawn = [line.get_ydata()[0] for line in over.lines[11:]]
    # 5000 N would make everything else a line at the bottom
    assert drawn == ([10.0, 100.0] if upper == 100.0 else [10.0])
    assert all(limit < over.get_ylim()[1] for limit in drawn)
    assert [label.get_text() for label in under.get_yticklabels()] == names


def test_eleven_muscles_have_eleven_colours():
    assert len(set(LINE_COLORS)) == len(LINE_COLORS) >= 11


def test_loop_time_marks():
    values = np.concatenate([np.full(99, 100.0), [400.0]])
    figure = plots.loop_time(values, 1000.0)
    texts = [text.get_text().strip() for text in figure.axes[0].texts]
    assert texts == ["p50 100 µs", "p99 103 µs", "deadline 1000 µs"]
    assert figure.axes[0].get_xlim()[1] > 1000.0
    assert len(plots.loop_time(values, None).axes[0].texts) == 2
    assert "no durations" in plots.loop_time(np.array([np.nan]), None).axes[0].texts[0].get_text()


def test_the_largest_error_is_told_though_its_row_is_not_drawn():
    time = np.arange(30_001.0)
    error = np.zeros((30_001, 3))
    error[7, 0] = 3e-3
    figure = plots.tracking(time, error, 0.0 * error, error, labels=XYZ, title="t")
    assert figure.axes[1].texts[0].get_text() == "max |e| = 3 mm"


def test_long_series_are_thinned_evenly():
    time = np.arange(30_001.0)
    thin, same = drawing.thin(time, time)
    assert len(thin) <= drawing.MAX_POINTS
    assert (thin == same).all()
    assert thin[0] == 0.0
    assert len(set(np.diff(thin))) == 1


def test_one_row_can_be_plotted(tmp_path):
    """The one row is drawn, at its time and in the limits of the axes."""
    row = np.array([[1.0, 2.0, 3.0]])
    now = np.array([0.5])
    tracking = plots.tracking(now, row + 0.25, row, row, labels=XYZ, title="t")
    for value, left, right in zip(row[0], tracking.axes[::2], tracking.axes[1::2], strict=True):
        assert data(left) == [([0.5], [value + 0.25]), ([0.5], [value])]
        assert data(right)[1] == ([0.5], [1e3 * value])
    path = plots.path(row + 0.25, row, XYZ.names, "t")
    assert [line.get_label() for line in path.axes[0].lines] == ["desired", "start"]
    assert data(path.axes[0]) == [([2.25], [3.25]), ([2.0], [3.0])]
    tensions = plots.tensions(now, row, list("abc"), np.full(3, 0.5), np.full(3, np.inf))
    assert data(tensions.axes[0])[:3] == [([0.5], [value]) for value in row[0]]
    assert [text.get_text() for text in tensions.axes[0].texts] == ["min 0.5 N"]
    lengths = plots.muscle_lengths(now, row, list("abc"))
    assert data(lengths.axes[0]) == [([0.5], [value]) for value in row[0]]
    assert data(lengths.axes[1]) == [([0.5], [0.0])] * 3
    loop_time = plots.loop_time(np.array([100.0]), 1000.0)
    assert sum(bar.get_height() for bar in loop_time.axes[0].patches) == 1.0
    for figure in (tracking, path, tensions, lengths, loop_time):
        drawing.save(figure, tmp_path / "plot.png")


def test_muscle_lengths_and_their_change():
    values = 0.3 + 0.01 * np.sin(TIME[:, None] + np.arange(3))
    over, under = plots.muscle_lengths(TIME, values, list("abc")).axes
    assert (over.get_ylabel(), under.get_ylabel()) == ("length [m]", "change since start [mm]")
    assert under.get_xlabel() == "time [s]"
    assert [text.get_text() for text in over.get_legend().get_texts()] == list("abc")
    for axis, drawn in ((over, values), (under, 1e3 * (values - values[0]))):
        np.testing.assert_array_equal([line.get_ydata() for line in axis.lines], drawn.T)
        assert all((line.get_xdata() == TIME).all() for line in axis.lines)


def test_efforts_have_a_chart_each_and_limits_that_are_near():
    values = np.column_stack([np.sin(TIME), 2.0 * np.cos(TIME)])
    figure = plots.efforts(TIME, values, ["hip", "knee"], np.array([4.0, 100.0]))
    hip, knee = figure.axes
    np.testing.assert_array_equal(hip.lines[0].get_ydata(), values[:, 0])
    assert [line.get_ydata()[0] for line in hip.lines[1:]] == [-4.0, 4.0]
    # a limit of 100 would make a line of all that moves between -2 and 2
    assert len(knee.lines) == 1
    assert [axis.get_ylabel() for axis in figure.axes] == ["[Nm or N]"] * 2
    names = [axis.get_legend().get_texts()[0].get_text() for axis in figure.axes]
    assert names == ["hip", "knee"]
    assert knee.get_xlabel() == "time [s]"


def test_efforts_of_many_motors_are_a_map_over_limit_or_peak():
    k = plots.MOST_NAMES + 1
    values = np.outer(np.sin(TIME), np.arange(k))
    limits = np.where(np.arange(k) % 2, 50.0, np.inf)
    axis, _ = plots.efforts(TIME, values, [f"j{i}" for i in range(k)], limits).axes
    assert [text.get_text() for text in axis.get_yticklabels()] == [f"j{i}" for i in range(k)]
    shown = np.asarray(axis.collections[0].get_array()).reshape(k, len(TIME))
    peaks = np.abs(values).max(axis=0)
    np.testing.assert_allclose(shown[3], values[:, 3] / 50.0)
    np.testing.assert_allclose(shown[4], values[:, 4] / peaks[4])
    assert not shown[0].any()


def test_latencies_are_drawn_with_their_percentiles():
    delays = np.arange(1.0, 101.0)
    time = 0.1 * np.arange(100)
    figure = plots.latencies({"board": (time, delays), "host": (np.zeros(0), np.zeros(0))}, "Lag")
    assert figure.get_suptitle() == "Lag"
    over, beside, nothing, _ = figure.axes
    assert data(over) == [(time.tolist(), delays.tolist())]
    assert over.get_title(loc="left") == "board: p50 50.50 ms, p99 99.01 ms, max 100.0 ms"
    assert over.get_ylabel() == "delay [ms]"
    assert sum(bar.get_height() for bar in beside.patches) == 100
    assert [line.get_xdata()[0] for line in beside.lines] == [pytest.approx(99.01)]
    assert nothing.get_title(loc="left") == "host: nothing measured"
    assert not nothing.lines


def test_of_many_latencies_the_longest_stay():
    delays = np.ones(100_000)
    delays[77_777] = 9.0
    figure = plots.latencies({"board": (np.arange(100_000.0), delays)})
    (line,) = figure.axes[0].lines
    assert len(line.get_ydata()) <= plots.MAX_DELAYS
    assert line.get_xdata()[line.get_ydata() == 9.0] == [77_777.0]


def test_plots_leave_the_users_settings_alone(tmp_path):
    before = dict(mpl.rcParams)
    drawing.save(plots.muscle_lengths(TIME, circle(), list("abc")), tmp_path / "a.png")
    assert dict(mpl.rcParams) == before


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("m", [5, 32, 33, 64, 121])
def test_many_muscles_fit_into_the_figure(m, tmp_path):
    """Beside the lines of many muscles there is no list of names; the map has them."""
    time = np.linspace(0.0, 1.0, 5)
    names = [f"muscle_with_a_long_name_{k}" for k in range(m)]
    values = np.tile(np.arange(m, dtype=float), (5, 1))
    figure = plots.tensions(time, values, names, np.zeros(m), np.full(m, 100.0))
    drawing.save(figure, tmp_path / "tensions.png")
    over, under = figure.axes[:2]
    assert (over.get_legend() is not None) == (m <= 32)
    assert [label.get_text() for label in under.get_yticklabels()] == names
    assert over.get_position().width > 0.2
    lengths = plots.muscle_lengths(time, 1e-3 * values, names)
    drawing.save(lengths, tmp_path / "lengths.png")
    over = lengths.axes[0]
    assert (over.get_legend() is not None) == (m <= 32)
    assert over.get_position().width > 0.2
