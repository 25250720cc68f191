"""The folder of a run: no other run gets it, and each part of a run that was reset has its own."""

import json
import zipfile

import numpy as np
import pytest

from cards_bringup.demo.run_folder import arrange, preparing
from cards_core.errors import CardsError


def log(folder, name, begun, rows, value=0.0):
    time = 1e-3 * np.arange(1, rows + 1)
    np.savez(folder / name, time=time, value=value)
    with zipfile.ZipFile(folder / name, "a") as archive:
        archive.comment = str(begun).encode()


def found(folder):
    return {
        str(path.relative_to(folder)): float(np.load(path)["value"])
        for path in sorted(folder.rglob("*.npz"))
    }


def test_a_run_without_reset_stays_as_it_is(tmp_path):
    log(tmp_path, "simulator.npz", 10.0, 500)
    log(tmp_path, "controller.npz", 9.0, 500, 1.0)  # a controller may be there first
    (part,) = arrange(tmp_path)
    assert (part.folder, part.name, part.time) == (tmp_path, "", 0.5)
    assert part.useful
    assert found(tmp_path) == {"controller.npz": 1.0, "simulator.npz": 0.0}


def test_what_was_before_resets_gets_folders_of_its_own(tmp_path):
    log(tmp_path, "simulator.before_reset_1.npz", 10.0, 3000, 1.0)
    log(tmp_path, "simulator.before_reset_2.npz", 20.0, 20, 2.0)
    log(tmp_path, "simulator.npz", 30.0, 4000, 3.0)
    # the controller answered nothing in the second part, and heard of the third reset late
    log(tmp_path, "controller.before_reset_1.npz", 9.5, 3000, 1.5)
    log(tmp_path, "controller.npz", 30.2, 4000, 3.5)
    parts = arrange(tmp_path)
    assert [part.name for part in parts] == ["before_reset_1", "before_reset_2", ""]
    assert [part.useful for part in parts] == [True, False, True]
    assert found(tmp_path) == {
        "before_reset_1/controller.npz": 1.5,
        "before_reset_1/simulator.npz": 1.0,
        "before_reset_2/simulator.npz": 2.0,
        "controller.npz": 3.5,
        "simulator.npz": 3.0,
    }


@pytest.mark.parametrize(("rows", "left"), [(0, False), (30, True)])
def test_pause_reset_and_ctrl_c_leave_the_run_before(tmp_path, rows, left):
    log(tmp_path, "simulator.before_reset_1.npz", 10.0, 3000, 1.0)
    log(tmp_path, "simulator.npz", 20.0, rows, 2.0)
    log(tmp_path, "controller.before_reset_1.npz", 9.0, 3000, 1.5)
    log(tmp_path, "controller.npz", 20.1, rows, 2.5)
    main, last = arrange(tmp_path)
    assert (main.name, last.name) == ("", "after_reset_1")
    assert main.time == 3.0
    assert not last.useful
    wanted = {"controller.npz": 1.5, "simulator.npz": 1.0}
    if left:
        wanted |= {"after_reset_1/controller.npz": 2.5, "after_reset_1/simulator.npz": 2.0}
    assert found(tmp_path) == wanted


def test_nothing_recorded(tmp_path):
    log(tmp_path, "simulator.npz", 10.0, 0)
    assert arrange(tmp_path) == []
    assert arrange(tmp_path / "nowhere") == []


def test_a_damaged_log_is_told_and_kept(tmp_path):
    (tmp_path / "simulator.npz").write_bytes(b"PK")
    with pytest.raises(CardsError, match=r"simulator\.npz: cannot be read"):
        arrange(tmp_path)
    assert (tmp_path / "simulator.npz").exists()


def test_a_reset_of_the_very_objects(tmp_path):
    """Simulator and controller as they run in one process, reset once, to run folders."""
    from cards_bringup.nodes.in_process import InProcessRun
    from cards_bringup.nodes.plan import make_plan
    from cards_core.loop.control_setup import make_control_loop
    from cards_sim.build import build_host
    from cards_viz.runs.folder import write_run_folder

    plan = make_plan({"simulator": "mujoco", "mode": "lockstep", "rviz": "false"}, "planar_2r")
    given = {"log_dir": str(tmp_path)}
    run = InProcessRun(plan, {"simulator": given, "ctc_joint": given}, 0.0, tmp_path)
    host = build_host(run.parameters("simulator"))
    session = make_control_loop("ctc_joint", run.parameters("ctc_joint"))
    states = []
    for steps in (150, 220):
        if states:
            host.reset()
            session.start()
        for _ in range(steps):
            host.submit(session.step(host.state))
            session.record(1.0, 0)
            host.step()
        states.append(host.state.q.copy())
    host.close()
    session.close()
    before, main = arrange(tmp_path)
    assert (before.name, main.name) == ("before_reset_1", "")
    assert (before.time, main.time) == pytest.approx((0.15, 0.22))
    for part, last in zip((before, main), states, strict=True):
        with np.load(part.folder / "simulator.npz") as logged:
            assert logged["q"][-1].tolist() == last.tolist()
        info = {"controller": "ctc_joint", "mode": "lockstep", "wall_time_s": 1.0}
        summary = write_run_folder(part.folder, host.simulator.robot, info)
        assert summary["verdict"] == "ok"
        assert json.loads((part.folder / "summary.json").read_text()) == summary
        assert (part.folder / "recording.mcap").exists()


def fail_early(out):
    with preparing() as prepare:
        prepare(out)
        raise CardsError("too early")


def test_two_runs_do_not_share_a_folder(tmp_path):
    out = tmp_path / "run"
    with preparing() as first:
        first(out)
        with pytest.raises(CardsError, match="in use by another run"):
            fail_early(out)
        assert out.is_dir()  # refusing the second run takes nothing away from the first
        (out / "summary.json").touch()
    assert [item.name for item in out.iterdir()] == ["summary.json"]
    with pytest.raises(CardsError, match="holds a run already"):
        fail_early(out)


def test_a_run_that_left_nothing_leaves_no_folder(tmp_path):
    with pytest.raises(CardsError, match="too early"):
        fail_early(tmp_path / "run")
    assert not list(tmp_path.iterdir())
