"""Pictures of workspaces: complete, the same each time, and without the network."""

import base64
import json
import re
import sys
from pathlib import Path

import numpy as np
import pytest
from matplotlib.colors import Normalize

from cards_core.analysis import workspace
from cards_core.analysis.status import PointStatus
from cards_core.analysis.workspace import Axis, Grid, Rays, Samples, make_job
from cards_core.errors import UnknownNameError
from cards_viz.plots.drawing import TENSION_COLORMAP, robust_range
from cards_viz.workspace.muscle_plots import (
    STATUS_COLORS,
    columns_of,
    draw,
    grid_part,
    page_data,
    scattered,
    workspace_figure,
)

X, Y, YAW = Axis("x", 0.1, 0.9, 9), Axis("y", 0.9, 0.1, 7), Axis("yaw", -0.5, 0.5, 3)
POINTS = {
    "map": Grid((X, Y)),
    "slices": Grid((X, Y, YAW)),
    "line": Grid((X,)),
    "point": Grid(()),
    "samples": Samples(500, 1),
    "nothing": Grid((Axis("x", 0.0, 1.0, 0),)),
    "rays": Rays(Grid((Y,)), {"platform_x": 1.0}, length=0.4),
    "fan": Rays(Grid(()), length=0.4, per_start=9),
}


@pytest.fixture(scope="module", params=POINTS)
def result(request, tmp_path_factory):
    job = make_job("planar_xy", "tension_factor", POINTS[request.param])
    return workspace.run(job, tmp_path_factory.mktemp(request.param))


def test_all_kinds_of_points_can_be_drawn_and_are_drawn_the_same(result, tmp_path):
    files = draw(result)
    assert all(file.parent == result.path / "plots" for file in files)
    kinds = [file.suffix for file in files]
    assert kinds == ([".png", ".svg"] if "ray" in files[0].stem else [".png", ".svg", ".html"])
    again = draw(result, folder=tmp_path)
    for one, other in zip(files, again, strict=True):
        assert one.read_bytes() == other.read_bytes()


def rgb(css):
    return [int(css[k : k + 2], 16) for k in (1, 3, 5)]


@pytest.fixture(scope="module")
def plane(tmp_path_factory):
    """Points of a plane of which some are feasible."""
    grid = Grid((Axis("x", 0.1, 0.9, 9), Axis("y", 1.3, 0.1, 7)))
    job = make_job("planar_xy", "tension_factor", grid)
    return workspace.run(job, tmp_path_factory.mktemp("plane"))


def test_a_map_has_its_cells_where_the_grid_has_them(plane):
    figure, name = workspace_figure(plane)
    assert name == "map"
    axes, scale = figure.axes
    assert (axes.get_xlabel(), axes.get_ylabel()) == ("platform_x [m]", "platform_y [m]")
    assert scale.get_ylabel() == "tension_factor"
    np.testing.assert_allclose(axes.images[0].get_extent(), [0.05, 0.95, 0.0, 1.4], atol=1e-12)
    # y falls along its axis: the lowest row of the picture is the last of the grid
    drawn = np.round(255 * np.asarray(axes.images[0].get_array())).astype(int)
    drawn = drawn[::-1].transpose(1, 0, 2)
    status, factor = plane.on_grid("status"), plane.on_grid("tension_factor")
    feasible = status == PointStatus.FEASIBLE
    assert 0 < feasible.sum() < feasible.size
    for kind in set(PointStatus) - {PointStatus.FEASIBLE}:
        assert (drawn[status == kind] == rgb(STATUS_COLORS[kind])).all()
    norm = Normalize(*robust_range(factor[feasible]))
    expected = np.round(255 * TENSION_COLORMAP(norm(factor[feasible]))[:, :3])
    np.testing.assert_array_equal(drawn[feasible], expected)


def test_slices_are_side_by_side(cube):
    figure, name = workspace_figure(cube)
    assert name == "slices"
    titles = [axes.get_title(loc="left") for axes in figure.axes[:3]]
    assert titles == [f"platform_yaw = {yaw:g} rad" for yaw in (-0.5, 0.0, 0.5)]
    for k, axes in enumerate(figure.axes[:3]):
        drawn = np.round(255 * np.asarray(axes.images[0].get_array())).astype(int)
        infeasible = (drawn == rgb(STATUS_COLORS[PointStatus.INFEASIBLE])).all(axis=2)
        wanted = cube.on_grid("status")[:, ::-1, k] == PointStatus.INFEASIBLE
        np.testing.assert_array_equal(infeasible, wanted.T)


def test_rays_have_their_intervals(tmp_path):
    result = workspace.run(make_job("planar_xy", "tension_factor", POINTS["rays"]), tmp_path)
    figure, name = workspace_figure(result)
    assert name == "rays"
    (axes,) = figure.axes
    assert axes.get_ylabel() == "platform_y [m]"
    drawn = [part for lines in axes.collections for part in lines.get_segments()]
    table = result.columns()
    assert len(drawn) == len(table["ray"])
    lengths = sorted(part[1, 0] - part[0, 0] for part in drawn)
    np.testing.assert_allclose(lengths, np.sort(table["end"] - table["begin"]))
    heights = sorted(part[0, 1] for part in drawn)
    np.testing.assert_allclose(heights, np.sort(table["platform_y"]))


def test_the_page_needs_no_network_and_holds_the_numbers(result, tmp_path):
    pages = [file for file in draw(result, folder=tmp_path) if file.suffix == ".html"]
    for page in pages:
        text = page.read_text()
        assert not re.search(r"https?:|//[a-z0-9.-]+\.[a-z]{2,}|@import|<link|src=", text)
        data = json.loads(re.search(r'type="application/json">(.*?)</script>', text, re.S)[1])
        table = result.columns()
        status = np.frombuffer(base64.b64decode(data["status"]), "<f4")
        np.testing.assert_array_equal(status, table["status"])
        for column in data["columns"]:
            values = np.frombuffer(base64.b64decode(column["data"]), "<f4")
            np.testing.assert_array_equal(values, table[column["name"]].astype("<f4"))


@pytest.fixture(scope="module")
def cube(tmp_path_factory):
    job = make_job("planar_xy", "tension_factor", POINTS["slices"])
    return workspace.run(job, tmp_path_factory.mktemp("cube"))


def test_parts_of_a_grid(cube):
    whole = cube.on_grid("tension_factor")
    part = grid_part(cube, [1, 0], [4, 100], {2: 2})
    np.testing.assert_array_equal(part.values(cube, "tension_factor"), whole[:, ::2, 2].T)
    np.testing.assert_array_equal(part.axes[0], np.linspace(0.9, 0.1, 7)[::2])
    assert part.held == {"platform_yaw": 0.5}
    assert grid_part(cube, [0, 1], [99, 99], {}).held == {"platform_yaw": 0.0}


def test_thinning_keeps_a_grid(cube):
    rows = scattered(cube, 60)
    assert 20 < len(rows) <= 60
    assert np.all(np.diff(rows) > 0)
    places = np.unravel_index(rows, (9, 7, 3))
    assert np.prod([len(np.unique(place)) for place in places]) == len(rows)


def test_names_of_columns(cube):
    names = columns_of(cube)
    assert names.coordinates == ("platform_x", "platform_y", "platform_yaw")
    assert names.metric(None) == "tension_factor"
    with pytest.raises(UnknownNameError, match="did you mean 'tension_factor'"):
        draw(cube, metric="tension_facto")


def test_a_name_cannot_end_the_script(cube):
    cube.summary["robot"] = "</script><b>"
    try:
        assert page_data(cube)["title"].startswith("</script>")
        for file in draw(cube):
            if file.suffix == ".html":
                assert "</script><b>" not in file.read_text()
    finally:
        cube.summary["robot"] = "planar_xy"


@pytest.mark.browser
def test_the_page_in_a_browser(cube, tmp_path):
    """Points are drawn in the map's colours, and nothing is fetched."""
    import shutil

    driver = pytest.importorskip("playwright.sync_api")
    path = next(filter(None, map(shutil.which, ("chromium", "chromium-browser"))), None)
    if path is None:
        pytest.skip("needs chromium (Debian and Ubuntu: apt install chromium)")
    page_file = next(f for f in draw(cube, folder=tmp_path) if f.suffix == ".html")
    arguments = ["--use-angle=swiftshader", "--enable-unsafe-swiftshader", "--no-sandbox"]
    with driver.sync_playwright() as play:
        browser = play.chromium.launch(executable_path=path, args=arguments)
        page = browser.new_page(viewport={"width": 900, "height": 600})
        problems, requests = [], []
        page.on("console", lambda message: problems.append(message.text))
        page.on("pageerror", lambda error: problems.append(str(error)))
        page.on("request", lambda request: requests.append(request.url))
        page.goto(page_file.as_uri())
        page.wait_for_function("window.workspaceReady")
        page.wait_for_timeout(500)
        assert problems == []
        assert requests == [page_file.as_uri()]
        count = """() => {
            const c = document.getElementById("gl"), copy = document.createElement("canvas");
            [copy.width, copy.height] = [c.width, c.height];
            const pen = copy.getContext("2d"); pen.drawImage(c, 0, 0);
            const data = pen.getImageData(0, 0, c.width, c.height).data;
            let n = 0;
            for (let i = 0; i < data.length; i += 4)
                if (data[i] + data[i + 1] + data[i + 2] < 600) n++;
            return n;
        }"""
        drawn = page.evaluate(count)
        assert drawn > 500
        page.locator("#status0").uncheck()
        page.wait_for_timeout(300)
        assert page.evaluate(count) == 0
        browser.close()


def test_the_template_is_installed_with_the_package():
    package = Path(sys.modules["cards_viz"].__file__).parent
    assert (package / "workspace" / "page.html").is_file()
