"""The command line: dispatch, errors, exit codes, and the small commands."""

import json
import os
import shutil
import subprocess
import sys
import textwrap
import types
from pathlib import Path

import pytest

from cards_bringup import cli
from cards_bringup.cli import test as test_command
from cards_core.errors import CardsError

TOP = Path(__file__).resolve().parents[4]


@pytest.fixture
def command(monkeypatch):
    """Put a command `fake` into the table; its run is what the test sets."""
    module = types.ModuleType("fake_command")
    state = types.SimpleNamespace(run=lambda _: 0)

    def add_fake(subparsers):
        parser = subparsers.add_parser("fake", description="``./cards fake``: nothing.")
        parser.add_argument("--json", action="store_true")
        parser.set_defaults(run=lambda args: state.run(args))

    module.add_fake = add_fake
    monkeypatch.setitem(sys.modules, "fake_command", module)
    monkeypatch.setitem(cli.COMMANDS, "fake", ("fake_command", "for the test"))
    return state


def raising(error):
    def run(_args):
        raise error

    return run


def test_exit_code_is_the_command_s(command):
    command.run = lambda _: 3
    assert cli.main(["fake"]) == 3


def test_american_spelling(capsys):
    with_s, with_z = (cli.main([name, "ik", "--help"]) for name in ("analyse", "analyze"))
    assert with_s == with_z == 0
    first, second = capsys.readouterr().out.split("usage:")[1:]
    assert first == second
    assert cli.resolved(["analyze", "analyze"]) == ["analyse", "analyze"]
    assert cli.resolved([]) == []


def test_error_of_ours_is_one_line_and_exit_code_2(command, capsys):
    command.run = raising(CardsError("no link named 'hand'"))
    assert cli.main(["fake"]) == 2
    out, err = capsys.readouterr()
    assert err == "error: no link named 'hand'\n"
    assert out == ""


def test_error_as_json(command, capsys):
    command.run = raising(CardsError("no link named 'hand'"))
    assert cli.main(["fake", "--json"]) == 2
    out, err = capsys.readouterr()
    assert json.loads(out) == {"error": {"type": "CardsError", "message": "no link named 'hand'"}}
    assert err == "error: no link named 'hand'\n"


def test_bug_is_not_hidden(command):
    command.run = raising(ZeroDivisionError("a bug"))
    with pytest.raises(ZeroDivisionError):
        cli.main(["fake"])


def test_interrupt(command):
    command.run = raising(KeyboardInterrupt())
    assert cli.main(["fake"]) == 130


def test_usage_error(command, capsys):
    assert cli.main(["fake", "--nonsense"]) == 2
    assert "--nonsense" in capsys.readouterr().err


def test_usage_error_is_of_the_command_and_may_be_json(command, capsys):
    assert cli.main(["fake", "--js", "--json"]) == 2
    out, err = capsys.readouterr()
    assert err.startswith("usage: ./cards fake")
    message = "unrecognized arguments: --js"  # and no abbreviation of --json
    assert json.loads(out) == {"error": {"type": "UsageError", "message": message}}


def test_unknown_command(capsys):
    assert cli.main(["nonsense"]) == 2
    assert "nonsense" in capsys.readouterr().err


def test_markup_of_docstrings_does_not_reach_the_terminal(command, capsys):
    assert cli.main(["fake", "--help"]) == 0
    assert "./cards fake: nothing." in capsys.readouterr().out


def test_closed_pipe_is_quiet():
    script = textwrap.dedent("""
        import sys, types
        from cards_bringup import cli
        module = types.ModuleType("fake_command")
        def add_fake(subparsers):
            def run(_):
                for i in range(100000):
                    print(i)
            subparsers.add_parser("fake").set_defaults(run=run)
        module.add_fake = add_fake
        sys.modules["fake_command"] = module
        cli.COMMANDS["fake"] = ("fake_command", "")
        sys.exit(cli.main(["fake"]))
    """)
    process = subprocess.Popen(
        [sys.executable, "-c", script], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    process.stdout.readline()
    process.stdout.close()
    err = process.stderr.read()
    assert process.wait(timeout=60) == 141
    assert err == ""


def test_help_imports_no_command():
    script = textwrap.dedent("""
        import sys
        from cards_bringup.cli import main
        main(["--help"])
        heavy = {"numpy", "yaml", "rclpy", "casadi", "mujoco"} & set(sys.modules)
        assert not heavy, heavy
        assert not [name for name in sys.modules if name.startswith("cards_bringup.cli.")]
    """)
    subprocess.run([sys.executable, "-c", script], check=True, capture_output=True, timeout=60)


@pytest.mark.parametrize("name", [name for name, (m, _) in cli.COMMANDS.items() if m])
def test_every_command_has_help_with_examples(name, capsys):
    assert cli.main([name, "--help"]) == 0
    out = capsys.readouterr().out
    assert f"./cards {name}" in out
    assert "examples:" in out


def test_models_lists_what_the_models_say(capsys):
    assert cli.main(["models", "--json"]) == 0
    models = {row["name"]: row for row in json.loads(capsys.readouterr().out)["models"]}
    assert models["planar_2r"]["degrees_of_freedom"] == 2
    assert models["planar_2r"]["muscles"] == len(models["planar_2r"]["muscle_names"])
    assert len(models["roboy_arm"]["joint_names"]) == 4
    assert Path(models["roboy_arm"]["source"]).is_file()
    rods = models["stewart_6pfs"]
    assert (rods["kind"], rods["rods"], rods["muscles"]) == ("rods", 6, 0)
    assert rods["degrees_of_freedom"] == len(rods["joint_names"]) == 6
    assert set(rods["limbs"].values()) == {"prismatic, spherical"}
    assert models["planar_2r"]["rods"] == 0


def test_models_as_a_table(capsys):
    assert cli.main(["models"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[0].split()[:5] == ["robot", "links", "DoF", "muscles", "rods"]
    assert any(line.startswith("planar_2r ") for line in lines)
    assert any(line.startswith("stewart_gough ") for line in lines)


def test_a_command_for_muscles_says_so_to_a_robot_of_rods(capsys):
    assert cli.main(["eval", "stewart_gough"]) == 2
    assert "is a robot of rods" in capsys.readouterr().err


def test_doubts_about_a_robot_of_rods_are_shown(tmp_path, monkeypatch, capsys):
    from cards_core.formats import find_model

    folder = find_model("stewart_gough").parent
    shutil.copytree(folder, tmp_path / "odd")
    text = (folder / "rods.yaml").read_text()
    (tmp_path / "odd" / "rods.yaml").write_text(text.replace("200.0e+9", "200e9"))
    monkeypatch.setenv("CARDS_MODEL_PATH", str(tmp_path))
    assert cli.main(["models"]) == 0
    assert "odd: note: " in capsys.readouterr().out


def test_broken_model_does_not_hide_the_others(tmp_path, monkeypatch, capsys):
    broken = tmp_path / "broken_robot"
    broken.mkdir()
    (broken / "model.sdf").write_text("<sdf version='1.11'><model name='m'></sdf>")
    monkeypatch.setenv("CARDS_MODEL_PATH", str(tmp_path))
    assert cli.main(["models", "--json"]) == 2
    rows = {row["name"]: row for row in json.loads(capsys.readouterr().out)["models"]}
    assert "model.sdf" in rows["broken_robot"]["error"]
    assert "error" not in rows["planar_2r"]
    assert cli.main(["models"]) == 2
    assert "broken_robot: error:" in capsys.readouterr().out


def test_tests_run_apart_from_the_user_s_robots():
    env = test_command.isolated({"ROS_DOMAIN_ID": "7", "KEPT": "1"}, 61, Path("unused"))
    assert env["ROS_DOMAIN_ID"] == "61"
    assert env["KEPT"] == "1"
    assert env["ROS_AUTOMATIC_DISCOVERY_RANGE"] == "LOCALHOST"
    assert env["GZ_IP"] == "127.0.0.1"


def test_modules_are_compiled_once_and_not_beside_their_sources(tmp_path):
    assert "PYTHONPYCACHEPREFIX" not in test_command.isolated({}, 61, tmp_path)
    (tmp_path / "module.py").write_text("import sys\n")
    forbidden = {**os.environ, "PYTHONDONTWRITEBYTECODE": "1"}
    env = test_command.isolated(forbidden, 61, tmp_path / "compiled")
    subprocess.run([sys.executable, "-c", "import module"], cwd=tmp_path, env=env, check=True)
    assert not (tmp_path / "__pycache__").exists()
    assert len(list((tmp_path / "compiled").rglob("module.*.pyc"))) == 1


@pytest.mark.parametrize("rest", [["-k", "wrench", "-x"], ["-x"], ["src/a", "-x"], []])
def test_options_of_pytest_are_passed_on(rest):
    assert cli.make_parser("test").parse_args(["test", *rest]).rest == rest


def test_pytest_command_line():
    (line,) = test_command.commands(["-k", "wrench"], dev=False)
    assert line[:5] == [sys.executable, "-P", "-m", "pytest", "-rs"]
    assert test_command.HYPOTHESIS in line
    assert "no:cacheprovider" in line
    assert line[-2:] == ["-k", "wrench"]
    assert all("no:cacheprovider" not in one for one in test_command.commands([], dev=True))
    assert test_command.commands(["--", "--help"], dev=False)[0][-1] == "--help"


def test_everything_runs_side_by_side_and_a_part_does_not(monkeypatch):
    monkeypatch.setattr(test_command.os, "cpu_count", lambda: 64)
    line, alone = test_command.commands([], dev=False)
    assert line[line.index("-n") + 1] == str(test_command.MOST_WORKERS + 1)
    assert "loadscope" in line
    assert "-n" not in alone
    assert line[-1] == f"not {alone[-1]}"
    assert "tests/test_hil.py" in alone
    assert not any("cards_core" in word for word in alone)
    (part,) = test_command.commands(["src/cards_core"], dev=False)
    monkeypatch.setattr(test_command.os, "cpu_count", lambda: 1)
    (single,) = test_command.commands([], dev=False)
    assert "-n" not in part + single


def test_only_tests_of_hosts_and_few_of_them_get_another_try(tmp_path):
    file = tmp_path / "failed"
    assert test_command.once_more(file) == []
    file.write_text("hosts\ttests/a.py::b[x y]\nhosts\ttests/c.py::d\nhosts\ttests/c.py::d\n")
    assert test_command.once_more(file) == ["tests/a.py::b[x y]", "tests/c.py::d"]
    file.write_text("hosts\ttests/a.py::b\nlibrary\tsrc/c.py::d\n")
    assert test_command.once_more(file) == []
    file.write_text("".join(f"hosts\ttests/a.py::b[{i}]\n" for i in range(11)))
    assert test_command.once_more(file) == []


@pytest.mark.parametrize(
    ("first", "kind", "again", "code"),
    [
        (0, "hosts", 1, 0),
        (1, "hosts", 0, 0),
        (1, "hosts", 1, 1),
        (1, "library", 0, 1),
        (3, "hosts", 0, 2),
    ],
)
def test_what_failed_beside_others_is_judged_alone(monkeypatch, first, kind, again, code):
    note = f"import os; open(os.environ['{test_command.FAILED}'], 'a').write('{kind}\\tx::y\\n')"

    def commands(rest, *, dev):
        if rest:
            assert rest == ["x::y"]
            return [[sys.executable, "-c", f"raise SystemExit({again})"]]
        return [
            [sys.executable, "-c", f"{note}; raise SystemExit({first})"],
            [sys.executable, "-c", "pass"],
        ]

    monkeypatch.setattr(test_command, "commands", commands)
    assert cli.main(["test"]) == code


def test_results_go_to_runs_of_the_current_folder(tmp_path, monkeypatch, capsys):
    from cards_core.files import new_run_folder

    monkeypatch.chdir(tmp_path)
    assert new_run_folder("planar_2r_none").parent.resolve() == tmp_path / "runs"
    for line in (
        ["analyse", "workspace", "planar_2r", "--condition", "static", "--samples", "1"],
        ["analyse", "workspace", "planar_3efr", "--grid", "x=0:0.01:2"],
    ):
        monkeypatch.setattr("sys.argv", ["cards", *line])
        assert cli.main(line) == 0
        shown = capsys.readouterr().out
        (folder,) = (tmp_path / "runs").iterdir()
        assert f"runs/{folder.name}/" in shown
        shutil.rmtree(folder)


@pytest.mark.parametrize(
    ("words", "good"),
    [
        (["nosuch"], False),
        (["-x", "src/nosuch"], False),
        (["src/cards_core/test/test_nosuch.py::test_a[x]"], False),
        (["-k", "nosuch"], True),
        (["-m", "not real_time", "-x", "src/cards_core"], True),
        (["tests/test_eval.py::test_table"], True),
        (["--pyargs", "cards_core"], True),
        (["--", "--help"], True),
        ([], True),
    ],
)
def test_paths_of_tests_are_looked_at_first(words, good):
    if good:
        test_command.check_paths(words, TOP)
    else:
        with pytest.raises(CardsError, match=r"no tests '.*nosuch.*expected: a file or folder"):
            test_command.check_paths(words, TOP)


def test_numbers_of_benchmarks_never_look_like_zero(monkeypatch, capsys):
    from cards_bringup.cli import bench

    result = {"rate_hz": 45871.5, "max_residual": 9.7e-7, "unsolved": 0, "none": 0.0, "us": -0.005}
    monkeypatch.setattr(bench, "_measure", lambda *_: result)
    assert cli.main(["bench", "rods"]) == 0
    shown = [line.split() for line in capsys.readouterr().out.splitlines()]
    assert shown == [
        ["rate_hz", "45871.500"],
        ["max_residual", "9.7e-07"],
        ["unsolved", "0"],
        ["none", "0.000"],
        ["us", "-0.005"],
    ]
