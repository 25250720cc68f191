"""Plans of chaos campaigns, and schedules that are drawn from them."""

import json
from dataclasses import asdict

import pytest

from cards_bringup import cli
from cards_bringup.soak.plan import APPLIES, TARGETED, TARGETS, read_plan, read_report
from cards_core.errors import CardsError, DescriptionError
from cards_core.shared_files import shared_folder

PLAN = """robot: planar_2r
systems: {topics: 1, boards: 2}
faults: {kill: 1, unplug: 1}
episode: 40
gap: [0.5, 2]
duration: [0.1, 1]
memory_growth: 50
"""


@pytest.fixture
def plan(tmp_path):
    file = tmp_path / "plan.yaml"
    file.write_text(PLAN)
    return read_plan(str(file))


def test_a_seed_is_a_schedule(plan):
    first, again, other = (plan.schedule(0.5, seed) for seed in (3, 3, 4))
    assert first == again
    assert first != other
    assert len(first) == 45


def test_a_longer_campaign_begins_as_a_shorter_one(plan):
    assert plan.schedule(1.0, 3)[:10] == plan.schedule(10 * 40 / 3600, 3)


def test_a_schedule_keeps_to_its_plan(plan):
    episodes = plan.schedule(1.0, 0)
    assert {episode.system for episode in episodes} == {"topics", "boards"}
    boards = sum(episode.system == "boards" for episode in episodes)
    assert 45 < boards < 75  # two thirds of 90, within four standard deviations
    for episode in episodes:
        end = 0.0
        for fault in episode.faults:
            assert episode.system in APPLIES[fault.kind]
            assert 0.5 - 2e-3 <= fault.at - end <= 2.0 + 2e-3
            assert 0.1 <= fault.duration <= 1.0
            assert (fault.target in TARGETS[episode.system]) == (fault.kind in TARGETED)
            end = fault.at + fault.duration
        assert episode.duration - end < 2.0 + 1.0
    assert not any(f.kind == "unplug" for e in episodes if e.system == "topics" for f in e.faults)


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("topics: 1", "topic: 1", "unknown key 'topic', did you mean 'topics'?"),
        ("unplug: 1", "unplugged: 1", "unknown key 'unplugged', did you mean 'unplug'?"),
        ("episode: 40", "episode: 0", "is 0 (expected: a finite number > 0)"),
        ("gap: [0.5, 2]", "gap: [2, 0.5]", "is 2 to 0.5"),
        ("kill: 1, unplug: 1", "unplug: 1", "has no fault for the system 'topics'"),
        ("systems: {topics: 1, boards: 2}", "systems: {}", "is empty"),
        ("kill: 1,", "kill: -1,", "is -1 (expected: a finite number > 0)"),
        ("robot: planar_2r\n", "", "has no 'robot'"),
        ("memory_growth: 50", "memory: 50", "unknown key 'memory'"),
        ("planar_2r", "planar_3r", "cannot be loaded: no model or file named 'planar_3r'"),
        ("planar_2r", "stewart_gough", "is a robot of rods; it has no muscles"),
        ("memory_growth: 50", "memory_growth: 50\nfirmware: qemu", "is 'qemu'"),
    ],
)
def test_a_wrong_plan_is_told_where(tmp_path, old, new, message):
    file = tmp_path / "plan.yaml"
    assert old in PLAN
    file.write_text(PLAN.replace(old, new))
    with pytest.raises(DescriptionError) as caught:
        read_plan(str(file))
    assert message in str(caught.value)
    assert str(file) in str(caught.value)


def test_an_unknown_plan_is_told_with_those_that_there_are():
    with pytest.raises(CardsError, match="hour"):
        read_plan("our")


@pytest.mark.parametrize("file", sorted((shared_folder() / "config" / "soak").glob("*.yaml")))
def test_plans_as_shipped(file):
    plan = read_plan(file.stem)
    assert plan.schedule(0.1, 0)


def test_the_hour_has_everything():
    plan = read_plan("hour")
    assert set(plan.systems) == set(TARGETS)
    assert set(plan.faults) == set(APPLIES)


def test_dry_run_and_replay(plan, tmp_path, capsys, monkeypatch):
    """What a report says is what is run again."""
    from cards_bringup.soak import report

    monkeypatch.chdir(tmp_path)
    words = ["soak", "--plan", "plan.yaml", "--hours", "0.1", "--seed", "3", "--dry-run"]
    assert cli.main([*words, "--json"]) == 0
    schedule = json.loads(capsys.readouterr().out)["schedule"]
    assert schedule == [episode.to_json() for episode in plan.schedule(0.1, 3)]
    episodes = [
        {"number": n, "system": "topics", "faults": [], "facts": {}, "violations": []}
        for n in range(4)
    ]
    data = report.summary(
        plan, schedule, episodes, seed=3, hours=0.1, wall_s=1.0, ended="Its time was over."
    )
    report.write(tmp_path, data)
    again, read, seed = read_report(tmp_path)
    assert again == plan
    assert read == plan.schedule(0.1, 3)[:4]
    assert seed == 3
    assert cli.main(["soak", "--replay", "report.json", "--dry-run", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["schedule"] == schedule[:4]


def test_a_report_of_nothing_is_not_ok(plan):
    from cards_bringup.soak import report

    data = report.summary(
        plan, plan.schedule(0.1, 3), [], seed=3, hours=0.1, wall_s=1.0, ended="It ended early."
    )
    assert data["verdict"] == "nothing done"
    assert "nothing done" in report.page(data)


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ((), "one of the arguments --plan --replay is required"),
        (("--plan", "quick", "--replay", "x"), "not allowed with argument"),
        (("--plan", "quick", "--hours", "0"), "a finite number > 0"),
        (("--replay", "nothing"), "nothing: no such file (expected: the report.json"),
        (("--replay", "nothing", "--seed", "1"), "--seed with --replay"),
        (("--plan", "quick", "--out", "full"), "is not an empty folder"),
    ],
)
def test_a_wrong_command_line_is_told(words, message, tmp_path, capsys, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "full").mkdir()
    (tmp_path / "full" / "file").touch()
    assert cli.main(["soak", *words]) == 2
    assert message in capsys.readouterr().err


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"at": []}, r"faults\[0\]\.at: is a list"),
        ({"at": "soon"}, r"faults\[0\]\.at: is 'soon'"),
        ({"kind": "unplug"}, r"faults\[0\]\.kind: is 'unplug'.*kill"),
        ({"target": "page"}, r"faults\[0\]\.target: is 'page'.*simulator, controller"),
        ({"seed": -1}, r"faults\[0\]\.seed: is -1"),
    ],
)
def test_a_damaged_report_is_not_replayed(plan, tmp_path, change, message):
    fault = {"at": 1.0, "kind": "kill", "target": "simulator", "duration": 1.0, "seed": 1}
    episode = {"number": 0, "system": "topics", "duration": 9.0, "faults": [{**fault, **change}]}
    data = {"plan": asdict(plan), "schedule": [episode], "episodes_done": 1, "seed": 3}
    (tmp_path / "report.json").write_text(json.dumps(data))
    with pytest.raises(DescriptionError, match=message):
        read_report(tmp_path)
