"""``cards analyse workspace`` as a user runs it."""

import json
import os
import signal
import subprocess
import sys
import time

import numpy as np
import pytest

GRID = ("planar_xy", "--condition", "wrench_closure", "--grid", "x=0.1:0.9:9,y=0.1:0.9:5")


@pytest.fixture
def workspace(cards):
    def run(*arguments):
        return cards("analyse", "workspace", *map(str, arguments))

    return run


def test_a_grid_as_json_and_as_table(workspace, tmp_path):
    done = workspace(*GRID, "--out", tmp_path / "out", "--json")
    assert done.returncode == 0, done.stderr
    summary = json.loads(done.stdout)
    assert summary["points"] == 45
    assert sum(summary["statuses"].values()) == 45
    assert summary["volume"]["of"] == pytest.approx(0.64)
    assert summary == {
        **json.loads((tmp_path / "out" / "summary.json").read_text()),
        "folder": str(tmp_path / "out"),
        "plots": [],
    }
    again = workspace(*GRID, "--out", tmp_path / "out")
    assert again.returncode == 0, again.stderr
    assert "planar_xy, wrench_closure: 45 points" in again.stdout
    assert "result.parquet" in again.stdout


def test_pandas_like_readers_see_coordinates(workspace, tmp_path):
    import pyarrow.parquet as pq

    assert workspace(*GRID, "--fix", "yaw=0.2", "--out", tmp_path / "out").returncode == 0
    table = pq.read_table(tmp_path / "out" / "result.parquet")
    assert table.column_names[:3] == ["platform_x", "platform_y", "status"]
    x = table.column("platform_x").to_numpy()
    np.testing.assert_array_equal(x, np.repeat(np.linspace(0.1, 0.9, 9), 5))
    about = json.loads(table.schema.metadata[b"cards"])
    assert about["fixed"] == {"platform_yaw": 0.2}


def test_the_same_command_finds_its_folder_again(cards, tmp_path):
    def run():
        return subprocess.run(
            [sys.executable, "-m", "cards_bringup", "analyse", "workspace", *GRID, "--json"],
            env=cards.environment,
            cwd=tmp_path,
            capture_output=True,
            text=True,
            check=True,
        )

    first, second = json.loads(run().stdout), json.loads(run().stdout)
    assert first == second
    assert first["folder"].startswith("runs/workspace_planar_xy_wrench_closure_")
    runs = json.loads((tmp_path / first["folder"] / "run.json").read_text())["runs"]
    assert len(runs) == 1


def test_plots_and_page(workspace, tmp_path):
    done = workspace(*GRID, "--out", tmp_path / "out", "--plot", "--json")
    assert done.returncode == 0, done.stderr
    plots = json.loads(done.stdout)["plots"]
    assert [os.path.basename(file) for file in plots] == ["map.png", "map.svg", "points.html"]
    assert all(os.path.getsize(file) > 1000 for file in plots)


def test_rays_samples_and_files(workspace, tmp_path):
    rays = workspace(
        "planar_xy", "--condition", "wrench_closure", "--rays", "x=0.05:0.95",
        "--grid", "y=0.2:0.8:4", "--out", tmp_path / "rays", "--json",
    )  # fmt: skip
    assert rays.returncode == 0, rays.stderr
    assert json.loads(rays.stdout)["rays"] == 4
    fan = workspace(
        "planar_xy", "--condition", "wrench_closure", "--fan", "6", "--among", "x,y",
        "--length", "0.4", "--out", tmp_path / "fan", "--json",
    )  # fmt: skip
    assert json.loads(fan.stdout)["rays"] == 6, fan.stderr
    samples = workspace(
        "planar_xy", "--condition", "wrench_closure", "--samples", "50", "--fix", "yaw=0",
        "--range", "x=0.2:0.8", "--out", tmp_path / "samples", "--json", "--format", "npz",
    )  # fmt: skip
    assert json.loads(samples.stdout)["points"] == 50, samples.stderr
    with np.load(tmp_path / "samples" / "result.npz") as archive:
        assert archive["platform_x"].min() >= 0.2
    points = tmp_path / "points.csv"
    points.write_text("x,platform_y\n0.5,0.5\nnan,0.5\n3,0.5\n")
    file = workspace(
        "planar_xy", "--condition", "wrench_closure", "--points", points, "--within-limits",
        "--out", tmp_path / "file", "--json",
    )  # fmt: skip
    statuses = json.loads(file.stdout)["statuses"]
    assert statuses["NOT_FINITE"] == statuses["OUTSIDE_LIMITS"] == 1


def test_list_of_conditions(workspace):
    table = workspace("--list-conditions")
    assert table.returncode == 0, table.stderr
    assert "wrench_closure: " in table.stdout
    assert "()" not in table.stdout
    rows = json.loads(workspace("--list-conditions", "--json").stdout)["conditions"]
    assert {"name", "text", "options"} == set(rows[0])


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((), "no robot"),
        (("planar_xy",), "no --condition"),
        (("planar_xy", "--condition", "wrench_closure"), "no points (expected: --grid"),
        (("planar_xy", "--condition", "wrench_clos", "--samples", "3"), "did you mean"),
        ((*GRID[:4], "x=0:1"), "--grid x=0:1 (expected: first:last:number"),
        ((*GRID[:4], "x=0:1:0"), "--grid x=0:1:0 (expected: first:last:number"),
        ((*GRID, "--condition", "static"), "(expected: one;"),
        ((*GRID, "--q=0,0,0"), "unrecognized arguments: --q=0,0,0"),
        ((*GRID[:4], "q=0:1:2"), "no coordinate named 'q'"),
        ((*GRID, "--samples", "3"), "--grid and --samples (expected: one of them)"),
        ((*GRID, "--option", "tolerance"), "expected: name=value"),
        ((*GRID, "--option", "speed=3"), "no option named 'speed'"),
        ((*GRID, "--fix", "x=0.2"), "given twice"),
        ((*GRID, "--rays", "yaw=1:1"), "end where they begin"),
        ((*GRID, "--workers", "0"), ">= 1"),
        ((*GRID, "--scheduler", "nonsense://here"), "no Dask scheduler answers"),
        (("planar_xy", "--resume", "there"), "the folder knows its job"),
        (("--resume", "nowhere"), "expected: a workspace job"),
    ],
)
def test_mistakes(workspace, tmp_path, arguments, message):
    out = () if "--resume" in arguments else ("--out", tmp_path / "out")
    done = workspace(*arguments, *out)
    assert done.returncode == 2, done.stderr
    assert message in done.stderr
    assert "Traceback" not in done.stderr


def test_ctrl_c_says_how_to_go_on(cards, tmp_path):
    out = tmp_path / "out"
    arguments = ("planar_xy", "--condition", "wrench_feasible", "--samples", "30000000",
                 "--chunk", "2000", "--out", str(out))  # fmt: skip
    with subprocess.Popen(
        [sys.executable, "-m", "cards_bringup", "analyse", "workspace", *arguments],
        env=cards.environment,
        stderr=subprocess.PIPE,
        text=True,
    ) as process:
        deadline = time.monotonic() + 120.0
        while len(list(out.glob("chunks/*.chunk"))) < 3:
            assert process.poll() is None, process.stderr.read()
            assert time.monotonic() < deadline
            time.sleep(0.02)
        process.send_signal(signal.SIGINT)
        text = process.stderr.read()
        assert process.wait(60.0) == 130
    assert f"go on: ./cards analyse workspace --resume {out}" in text
    assert len(list(out.glob("chunks/*.chunk"))) >= 3
