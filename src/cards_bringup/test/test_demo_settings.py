"""``./cards demo --set``: parameters of single nodes."""

import json

import pytest

from cards_bringup import cli
from cards_bringup.demo.settings import merge, settings
from cards_core.errors import CardsError, UnknownNameError

NODES = ["simulator", "left/ctc_joint", "right/ctc_joint", "left/mrc"]


def test_values_are_yaml_and_nodes_are_full_or_last_names():
    given = settings(
        ["simulator.dt=0.0005", "mrc.goal=[1, -2]", "left/ctc_joint.a.b=yes", "/simulator.x=a=b"],
        NODES,
    )
    assert given == {
        "simulator": {"dt": 0.0005, "x": "a=b"},
        "left/mrc": {"goal": [1, -2]},
        "left/ctc_joint": {"a.b": True},
    }


@pytest.mark.parametrize(
    ("texts", "words"),
    [
        (["simulator"], "NODE.NAME=VALUE"),
        (["simulator=3"], "NODE.NAME=VALUE"),
        (["dt=0.5.1"], "NODE.NAME=VALUE"),
        ([".dt=1"], "NODE.NAME=VALUE"),
        (["ctc_joint.x=1"], "2 nodes .expected: left/ctc_joint or right/ctc_joint"),
        (["mrc.x=[1"], "not YAML"),
        (["mrc.x=1", "left/mrc.x=2"], "given twice"),
    ],
)
def test_mistakes_name_the_option(texts, words):
    with pytest.raises(CardsError, match=words):
        settings(texts, NODES)


def test_unknown_nodes_are_told_with_the_known_ones():
    with pytest.raises(UnknownNameError, match="did you mean 'simulator'"):
        settings(["simulater.x=1"], NODES)


def test_what_the_demo_sets_itself_is_not_overridden():
    own = {"simulator": {"duration": 3.0}}
    merge(own, {"simulator": {"dt": 0.1}, "cpg": {"goal": []}})
    assert own == {"simulator": {"duration": 3.0, "dt": 0.1}, "cpg": {"goal": []}}
    with pytest.raises(CardsError, match=r"--set simulator\.duration.*--duration"):
        merge(own, {"simulator": {"duration": 4.0}})


def test_a_demo_follows_it(tmp_path, capsys):
    common = ["demo", "tetrahedral_6", "--headless", "--no-ros", "--mode", "lockstep"]
    common += ["--controller", "cpg", "--duration", "1", "--json"]
    hashes = []
    for name, more in (("a", []), ("b", ["--set", "cpg.active=false"])):
        assert cli.main([*common, "--out", str(tmp_path / name), *more]) == 0
        hashes.append(json.loads(capsys.readouterr().out)["trajectory_sha256"])
    assert hashes[0] != hashes[1]
    assert cli.main([*common, "--out", str(tmp_path / "c"), "--set", "cpg.activ=false"]) != 0
    assert "did you mean 'active'" in capsys.readouterr().err
