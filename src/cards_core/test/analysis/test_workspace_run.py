"""Jobs: the same bytes whatever happens on the way, and clear words where something is wrong."""

import dataclasses
import hashlib
import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest
from workspace_cases import KIND, chain_robot, cube_robot, killed_in_the_works

from cards_core.analysis import workspace
from cards_core.analysis.conditions.registry import CONDITIONS
from cards_core.analysis.status import PointStatus
from cards_core.analysis.workspace import Axis, Grid, Rays, Samples, execute, make_job, read_points
from cards_core.analysis.workspace import folder as folders
from cards_core.analysis.workspace.chunks import DamagedChunkError, pack, unpack
from cards_core.analysis.workspace.folder import JobFolder
from cards_core.errors import CardsError, UnknownNameError

HERE = Path(__file__).parent
GRID = Grid(
    (Axis("x", -1.0, 1.0, 21), Axis("y", -0.8, 0.8, 17), Axis("z", -0.6, 0.6, 5)),
)


@pytest.fixture(autouse=True)
def _registered(monkeypatch):
    monkeypatch.setitem(CONDITIONS, "in_ball", KIND)


def ball_job(points=GRID, **arguments):
    arguments.setdefault("chunk", 100)
    return make_job(cube_robot(), "in_ball", points, **arguments)


def digest(result):
    return hashlib.sha256(result.file.read_bytes()).hexdigest()


@pytest.fixture(scope="module")
def reference(tmp_path_factory):
    with pytest.MonkeyPatch.context() as patch:
        patch.setitem(CONDITIONS, "in_ball", KIND)
        return workspace.run(ball_job(), tmp_path_factory.mktemp("reference"), workers=1)


def test_the_result_is_the_conditions_answer_at_the_points(reference):
    table = reference.columns()
    assert list(table) == ["x", "y", "z", "status", "margin"]
    axes = [np.linspace(a.start, a.stop, a.count) for a in GRID.axes]
    mesh = np.meshgrid(*axes, indexing="ij")
    for name, expected in zip("xyz", mesh, strict=True):
        np.testing.assert_array_equal(table[name], expected.ravel())
    margin = 0.5 - np.sqrt(sum(m.ravel() ** 2 for m in mesh))
    np.testing.assert_allclose(table["margin"], margin, atol=1e-15)
    np.testing.assert_array_equal(table["status"] == PointStatus.FEASIBLE, margin >= 0.0)
    np.testing.assert_array_equal(reference.on_grid("margin").ravel(), table["margin"])
    np.testing.assert_array_equal(
        reference.q(7, 9), np.column_stack([m.ravel() for m in mesh])[7:9]
    )
    some = reference.rows(np.array([0, 99, 100, 1784]), "margin")
    np.testing.assert_array_equal(some["margin"], table["margin"][[0, 99, 100, 1784]])


def test_pandas_readers_find_names_and_units(reference):
    about = reference.metadata
    assert about["condition"] == "in_ball"
    assert about["options"] == {"radius": 0.5, "pause": 0.0}
    assert about["columns"]["margin"]["unit"] == "m"
    assert about["statuses"]["2"] == "NOT_FINITE"
    assert list(about["columns"]) == ["x", "y", "z", "status", "margin"]


def test_summary(reference):
    summary = reference.summary
    table = reference.columns()
    feasible = table["margin"] >= 0.0
    assert summary["points"] == 21 * 17 * 5
    counts = {"FEASIBLE": int(feasible.sum()), "INFEASIBLE": int((~feasible).sum())}
    assert summary["statuses"] == counts
    assert summary["fraction_feasible"] == feasible.mean()
    box = {n: [table[n][feasible].min(), table[n][feasible].max()] for n in "xyz"}
    assert summary["bounding_box"] == box
    assert summary["volume"]["unit"] == "m^3"
    assert summary["volume"]["of"] == pytest.approx(2.0 * 1.6 * 1.2)
    # 0.1 m cells in x and y, 0.3 m in z
    assert summary["volume"]["feasible"] == pytest.approx(feasible.sum() * 0.1 * 0.1 * 0.3)
    best = summary["metrics"]["margin"]["max"]
    assert best["value"] == 0.5
    np.testing.assert_allclose([best["at"][n] for n in "xyz"], 0.0, atol=1e-15)
    assert summary["sha256"] == digest(reference)


def test_a_grids_volume_is_that_of_the_box_and_nearly_that_of_the_ball(tmp_path):
    axes = tuple(Axis(n, -1.0, 1.0, 81) for n in "xyz")
    result = workspace.run(ball_job(Grid(axes), chunk=65536), tmp_path / "grid")
    # cells that the sphere cuts are at most those within half a diagonal of it
    cell = 2.0 / 80.0
    error = 4.0 * np.pi * 0.5**2 * cell * np.sqrt(3.0) / 2.0
    assert abs(result.summary["volume"]["feasible"] - np.pi / 6.0) < error
    everything = {"radius": 9.0}
    result = workspace.run(ball_job(Grid(axes), chunk=65536, options=everything), tmp_path / "all")
    assert result.summary["volume"]["feasible"] == pytest.approx(8.0, rel=1e-12)


def test_samples_estimate_the_volume(tmp_path):
    result = workspace.run(ball_job(Samples(20_000, 1), chunk=4096), tmp_path / "out")
    volume = result.summary["volume"]
    assert volume["of"] == 8.0
    assert abs(volume["feasible"] - np.pi / 6.0) < 5.0 * volume["standard_error"]


@pytest.mark.parametrize("workers", [2, 5])
def test_same_bytes_with_more_workers(tmp_path, reference, workers):
    result = workspace.run(ball_job(), tmp_path / "out", workers=workers)
    assert digest(result) == digest(reference)
    assert result.summary == reference.summary


def test_same_bytes_from_dask(tmp_path, reference):
    distributed = pytest.importorskip("distributed")
    with (
        distributed.LocalCluster(
            n_workers=2, threads_per_worker=1, processes=False, dashboard_address=":0"
        ) as cluster,
        distributed.Client(cluster, set_as_default=False) as client,
    ):
        result = workspace.run(ball_job(), tmp_path / "client", scheduler=client)
        assert digest(result) == digest(reference)
        np.savez(tmp_path / "points.npz", q=np.linspace(-1, 1, 300).reshape(100, 3))
        points = read_points(tmp_path / "points.npz", cube_robot().tree)
        local = workspace.run(ball_job(points, chunk=7), tmp_path / "local")
        away = workspace.run(ball_job(points, chunk=7), tmp_path / "away", scheduler=client)
        assert digest(local) == digest(away)


@pytest.mark.parametrize("address", ["tcp://127.0.0.1:9", "127.0.0.1:9", "nonsense://x", "x"])
def test_a_scheduler_that_is_not_there(tmp_path, address):
    pytest.importorskip("distributed")
    with pytest.raises(CardsError, match=f"no Dask scheduler answers at '{address}'"):
        workspace.run(ball_job(), tmp_path / "out", scheduler=address)


RUN = """
import sys
import workspace_cases
from cards_core.analysis import workspace
if len(sys.argv) > 2:
    from cards_core.analysis.workspace.folder import read_job
    job = read_job(sys.argv[2])
    workspace.run(job, sys.argv[1], workers=2)
else:
    workspace.resume(sys.argv[1], workers=2)
"""


def start(*arguments, **more):
    environment = {
        **os.environ,
        **more,
        "CARDS_TEST_CONDITIONS": "1",
        "PYTHONPATH": os.pathsep.join([str(HERE), *sys.path]),
    }
    return subprocess.Popen(
        [sys.executable, "-c", RUN, *map(str, arguments)],
        env=environment,
        stderr=subprocess.PIPE,
        text=True,
    )


def wait_for_chunks(process, folder, count):
    deadline = time.monotonic() + 120.0
    while len(list((folder / "chunks").glob("*.chunk"))) < count:
        assert process.poll() is None, process.stderr.read()
        assert time.monotonic() < deadline
        time.sleep(0.01)


@pytest.mark.parametrize("how", [signal.SIGKILL, signal.SIGINT])
def test_same_bytes_after_a_kill_and_resume(tmp_path, how):
    job = ball_job(chunk=50)
    whole = workspace.run(job, tmp_path / "whole", workers=2)
    out, source, gate = (tmp_path / name for name in ("out", "source", "gate"))
    source.mkdir()
    (source / "job.json").write_text(json.dumps(job.to_json()))
    half = {"CARDS_TEST_GATE": str(gate), "CARDS_TEST_CALLS": str(job.chunks // 2 + 2)}
    with start(out, source, **half) as process:
        wait_for_chunks(process, out, job.chunks // 2)
        process.send_signal(how)
        gate.touch()
        process.wait(60.0)
    assert process.returncode != 0
    done = len(list((out / "chunks").glob("*.chunk")))
    assert job.chunks // 2 <= done < job.chunks
    with pytest.raises(CardsError, match=f"{done} of {job.chunks} chunks"):
        workspace.load(out)
    with start(out) as process:
        assert process.wait(120.0) == 0, process.stderr.read()
    again = workspace.load(out)
    assert digest(again) == digest(whole)
    assert again.summary == whole.summary
    assert not (out / "chunks").exists()
    runs = json.loads((out / "run.json").read_text())["runs"]
    # what was there was not computed again; Ctrl-C leaves time to say so
    assert (
        runs[-1]["points"]
        == job.points.count - sum(min(50, job.points.count - 50 * i) for i in range(done))
        or how == signal.SIGKILL
    )
    assert runs[-1]["points"] < job.points.count


def half_done(tmp_path, job, chunks):
    """Stop a run after some chunks, as Ctrl-C does."""
    out = tmp_path / "out"

    def stop(done, total):
        if done >= chunks * job.chunk:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        workspace.run(job, out, workers=1, progress=stop)
    return out


def test_damaged_chunks_are_computed_again(tmp_path, reference):
    job = ball_job()
    out = half_done(tmp_path, job, 8)
    files = sorted((out / "chunks").glob("*.chunk"))
    content = bytearray(files[2].read_bytes())
    content[-1] ^= 1
    files[2].write_bytes(content)
    files[4].write_bytes(files[4].read_bytes()[:-10])
    files[5].write_bytes(b"")
    files[6].write_bytes(files[1].read_bytes())  # in order, but of another place
    assert set(JobFolder(out, job).missing()) >= {2, 4, 5, 6}
    for index in (0, 1, 3):
        JobFolder(out, job).read_chunk(index)
    assert digest(workspace.run(job, out)) == digest(reference)


def test_a_damaged_result_is_not_loaded_and_is_made_again(tmp_path, reference):
    job = ball_job()
    result = workspace.run(job, tmp_path / "out")
    content = bytearray(result.file.read_bytes())
    content[100] ^= 255
    result.file.write_bytes(content)
    with pytest.raises(CardsError, match="no complete result"):
        workspace.load(tmp_path / "out")
    assert digest(workspace.run(job, tmp_path / "out")) == digest(reference)


def test_a_complete_job_is_not_computed_again(tmp_path):
    job = ball_job()
    first = workspace.run(job, tmp_path / "out")
    seen = []
    again = workspace.run(job, tmp_path / "out", progress=lambda *a: seen.append(a))
    assert again.summary == first.summary
    assert seen == [(job.points.count, job.points.count)]
    assert len(json.loads((tmp_path / "out" / "run.json").read_text())["runs"]) == 1


def test_progress_tells_what_was_there_first(tmp_path):
    job = ball_job()
    out = half_done(tmp_path, job, 5)
    there = len(list((out / "chunks").glob("*.chunk")))
    seen = []
    workspace.run(job, out, progress=lambda *a: seen.append(a))
    assert seen[0] == (100 * there, job.points.count)
    assert seen[-1] == (job.points.count, job.points.count)
    assert [done for done, _ in seen] == sorted(done for done, _ in seen)


def test_folders_of_others_are_refused(tmp_path):
    (tmp_path / "thesis.tex").write_text("years of work")
    for restart in (False, True):
        with pytest.raises(CardsError, match=r"holds other files, e\.g\. 'thesis\.tex'"):
            workspace.run(ball_job(), tmp_path, restart=restart)
    assert [item.name for item in tmp_path.iterdir()] == ["thesis.tex"]
    assert (tmp_path / "thesis.tex").read_text() == "years of work"
    (tmp_path / "job.json").write_text('{"of": "another program"}')
    with pytest.raises(CardsError, match="no workspace job"):
        workspace.run(ball_job(), tmp_path, restart=True)
    assert (tmp_path / "job.json").exists()


def test_another_job_is_refused_in_words(tmp_path):
    workspace.run(ball_job(), tmp_path)
    others = {
        "other options": ball_job(options={"radius": 0.4}),
        "other points": ball_job(Samples(10)),
        "chunk 100": ball_job(chunk=99),
        "within_limits False": ball_job(within_limits=True),
        "format parquet": ball_job(format="npz"),
        "another version of the code": dataclasses.replace(ball_job(), code="other"),
    }
    for words, job in others.items():
        store = JobFolder(tmp_path, job)
        with pytest.raises(CardsError, match=f"holds another job: .*{words}"):
            store.prepare()
    with pytest.raises(CardsError, match="robot cube"):
        workspace.run(
            make_job(chain_robot(), "in_ball", Grid((Axis("lift", 0.0, 1.0, 3),))), tmp_path
        )
    result = workspace.run(others["other options"], tmp_path, restart=True)
    assert result.summary["options"]["radius"] == 0.4


def test_restart_leaves_what_others_put_beside_the_job(tmp_path):
    workspace.run(ball_job(), tmp_path)
    (tmp_path / "notes.txt").write_text("of the user")
    (tmp_path / "plots").mkdir()
    for name in ("map.png", "thesis.tex"):
        (tmp_path / "plots" / name).touch()
    result = workspace.run(ball_job(options={"radius": 0.4}), tmp_path, restart=True)
    assert result.file.exists()
    assert (tmp_path / "notes.txt").read_text() == "of the user"
    assert [item.name for item in (tmp_path / "plots").iterdir()] == ["thesis.tex"]


def test_a_folder_of_a_process_that_was_killed_while_it_made_it(tmp_path, reference):
    (tmp_path / "chunks").mkdir()
    for name in (".lock", "points.f8", ".points.f8.part", ".job.json.part"):
        (tmp_path / name).write_bytes(b"half")
    (tmp_path / "chunks" / ".000003.chunk.part").write_bytes(b"half")
    (tmp_path / "chunks" / "000002.chunk").write_bytes(b"of another job")
    assert digest(workspace.run(ball_job(), tmp_path)) == digest(reference)


def test_other_code_is_refused(tmp_path):
    job = dataclasses.replace(ball_job(), code="0" * 64)
    with pytest.raises(CardsError, match="made by code 000000000000"):
        workspace.run(job, tmp_path / "out")
    assert not (tmp_path / "out" / "job.json").exists()


def test_a_worker_process_that_dies_is_an_error_with_a_name(tmp_path, monkeypatch):
    monkeypatch.setattr(execute, "_indexed", killed_in_the_works)
    job = make_job("planar_xy", "wrench_closure", Samples(10))
    with pytest.raises(CardsError, match="worker process died"):
        workspace.run(job, tmp_path / "job", workers=1, processes=True)
    monkeypatch.undo()
    assert workspace.run(job, tmp_path / "job", workers=1).summary["points"] == 10


def test_two_runs_in_one_folder_are_refused(tmp_path):
    job = ball_job()
    with JobFolder(tmp_path, job).locked(), pytest.raises(CardsError, match="in use by another"):
        workspace.run(job, tmp_path)
    workspace.run(job, tmp_path)


def test_a_full_disk_is_an_error_that_can_be_resumed(tmp_path, reference):
    """The kernel refuses to write more than a limit, as a full disk does."""
    job = ball_job()
    source = tmp_path / "source"
    source.mkdir()
    (source / "job.json").write_text(json.dumps(job.to_json()))
    size = len((source / "job.json").read_bytes())
    limited = f"import resource\nresource.setrlimit(resource.RLIMIT_FSIZE, ({size + 512},) * 2)\n"
    out = tmp_path / "out"
    process = subprocess.run(
        # -B: Python takes no notice if a compiled module is cut short
        [sys.executable, "-B", "-c", limited + RUN, out, source],
        env={
            **os.environ,
            "CARDS_TEST_CONDITIONS": "1",
            "PYTHONPATH": os.pathsep.join([str(HERE), *sys.path]),
        },
        capture_output=True,
        text=True,
        check=False,
    )
    assert process.returncode != 0
    assert "cannot be written: " in process.stderr
    assert "File too large" in process.stderr
    assert not list(out.glob("**/*.part"))
    assert digest(workspace.run(job, out)) == digest(reference)


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write anywhere")
def test_a_folder_without_permission(tmp_path):
    tmp_path.chmod(0o500)
    with pytest.raises(CardsError, match="cannot be written: Permission denied"):
        workspace.run(ball_job(), tmp_path / "out")


def test_a_folder_that_cannot_be():
    with pytest.raises(CardsError, match="cannot be written: "):
        workspace.run(ball_job(), "/proc/none")


def test_points_that_are_none_have_a_status(tmp_path):
    q = np.array([[0, 0, 0], [np.nan, 0, 0], [0, np.inf, 0], [9, 0, 0], [2, 0, 0]], float)
    np.savez(tmp_path / "points.npz", q=q)
    points = read_points(tmp_path / "points.npz", cube_robot().tree)
    expected = [
        PointStatus.FEASIBLE,
        PointStatus.NOT_FINITE,
        PointStatus.NOT_FINITE,
        PointStatus.NOT_CONVERGED,
        PointStatus.INFEASIBLE,
    ]
    table = workspace.run(ball_job(points), tmp_path / "out").columns()
    np.testing.assert_array_equal(table["status"], expected)
    np.testing.assert_array_equal(np.isnan(table["margin"]), [False, True, True, True, False])
    np.testing.assert_array_equal(table["x"], q[:, 0])
    limited = workspace.run(ball_job(points, within_limits=True), tmp_path / "limited").columns()
    expected[3:] = [PointStatus.OUTSIDE_LIMITS] * 2
    np.testing.assert_array_equal(limited["status"], expected)


def test_point_files_are_not_needed_to_resume(tmp_path):
    path = tmp_path / "points.csv"
    path.write_text("x,y\n" + "\n".join(f"{i / 500},{-i / 700}" for i in range(500)))
    points = read_points(path, cube_robot().tree, fixed={"z": 0.1})
    job = ball_job(points, chunk=50)
    whole = workspace.run(job, tmp_path / "whole")
    out = half_done(tmp_path, job, 4)
    path.unlink()
    assert digest(workspace.resume(out)) == digest(whole)
    (out / folders.POINTS).write_bytes(b"x" * (16 * 500))
    (out / "summary.json").unlink()
    with pytest.raises(CardsError, match="missing or damaged"):
        workspace.resume(out)


def test_no_points(tmp_path):
    empty = Grid((Axis("x", 0.0, 1.0, 0), Axis("y", 0.0, 1.0, 5)))
    for kind in ("parquet", "npz"):
        result = workspace.run(ball_job(empty, format=kind), tmp_path / kind)
        assert result.summary["points"] == 0
        assert result.summary["fraction_feasible"] is None
        assert {n: len(c) for n, c in result.columns().items()} == dict.fromkeys(
            ["x", "y", "status", "margin"], 0
        )
    rays = Rays(empty, {"z": 1.0})
    assert workspace.run(ball_job(rays), tmp_path / "rays").summary["rays"] == 0


def test_one_point(tmp_path):
    result = workspace.run(ball_job(Grid((), {"x": 0.3})), tmp_path / "out")
    assert list(result.columns()) == ["status", "margin"]
    np.testing.assert_allclose(result.columns()["margin"], [0.2], atol=1e-15)
    assert result.summary["volume"] is None


def test_npz_holds_the_same_and_is_the_same_each_time(tmp_path, reference):
    results = [workspace.run(ball_job(format="npz"), tmp_path / str(n), workers=n) for n in (1, 2)]
    assert digest(results[0]) == digest(results[1])
    for name, column in results[0].columns().items():
        np.testing.assert_array_equal(column, reference.columns()[name])
    assert results[0].metadata["columns"] == reference.metadata["columns"]


def test_rays_as_a_job(tmp_path):
    rays = Rays(Grid((Axis("y", -0.4, 0.4, 9),), {"x": -1.0}), {"x": 1.0}, length=2.0)
    results = [
        workspace.run(ball_job(rays, chunk=2), tmp_path / str(n), workers=n) for n in (1, 3)
    ]
    assert digest(results[0]) == digest(results[1])
    summary = results[0].summary
    assert (summary["rays"], summary["rays_with_feasible_part"]) == (9, 9)
    widths = 2.0 * np.sqrt(0.25 - np.linspace(-0.4, 0.4, 9) ** 2)
    assert summary["lengths"]["FEASIBLE"] == pytest.approx(widths.sum(), abs=9e-6)


def test_mistakes_have_names():
    with pytest.raises(UnknownNameError, match="no condition named 'in_bal'; did you mean"):
        make_job(cube_robot(), "in_bal", GRID)
    with pytest.raises(UnknownNameError, match="no option named 'radios'; did you mean 'radius'"):
        ball_job(options={"radios": 1.0})
    with pytest.raises(UnknownNameError, match="no coordinate named 'w'"):
        ball_job(Grid((Axis("w", 0.0, 1.0, 3),)))
    with pytest.raises(UnknownNameError, match="no format"):
        ball_job(format="xls")
    with pytest.raises(CardsError, match="at least 1"):
        ball_job(chunk=0)


def test_jobs_of_no_kind(tmp_path):
    with pytest.raises(CardsError, match="expected: a workspace job"):
        workspace.load(tmp_path)
    for text in ("", "[]", "{}", '{"format_version": 99}'):
        (tmp_path / "job.json").write_text(text)
        with pytest.raises(CardsError, match=r"workspace job|format 99"):
            workspace.load(tmp_path)


def test_equal_jobs_have_equal_keys():
    assert ball_job(options={"radius": 2}).key == ball_job(options={"radius": 2.0}).key
    assert ball_job().key == dataclasses.replace(ball_job()).key
    moved = dataclasses.replace(ball_job().robot, base="elsewhere")
    assert dataclasses.replace(ball_job(), robot=moved).key == ball_job().key
    assert ball_job(options={"radius": 2.5}).key != ball_job(options={"radius": 2.0}).key


def test_chunks_as_bytes():
    columns = {"status": np.array([0, 1], np.uint8), "value": np.array([1.5, np.nan])}
    data = pack("job", 3, columns)
    chunk = unpack(data)
    assert (chunk.job, chunk.index) == ("job", 3)
    np.testing.assert_array_equal(chunk.columns["value"], columns["value"])
    odd = columns["value"].copy()
    odd.view(np.uint64)[1] |= np.uint64(0x8000000000000001)  # a NaN with another sign and payload
    assert pack("job", 3, {**columns, "value": odd}) == data
    for damaged in (data[:-1], data + b"x", b"", b"x" + data[1:], data[:60] + b"?" + data[61:]):
        with pytest.raises(DamagedChunkError):
            unpack(damaged)
