"""What a user gets wrong is told with what would be right, and changes nothing."""

import sys
import threading
import warnings
from importlib.metadata import EntryPoint

import numpy as np
import pytest

import cards
from cards_core.control import registry
from cards_core.control.ctc_joint import CtcJoint
from cards_core.control.interface import Controller
from cards_core.errors import CardsError, ParameterError, ShapeError, UnknownNameError
from cards_core.muscles.command import CommandPart, command_of
from cards_core.paths.wrapping.geodesic_paths import GeodesicPaths
from cards_core.robot.state import RobotState

NAN = float("nan")


@pytest.fixture(scope="module")
def planar():
    return cards.load("planar_2r")


@pytest.fixture(scope="module")
def rods():
    return cards.load("planar_3rfr")


def refused(call, words="expected"):
    with pytest.raises(CardsError, match=words) as caught:
        call()
    assert len(str(caught.value)) < 1000
    return str(caught.value)


# Kinds of objects ------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "call",
    [
        cards.compile,
        cards.Simulator,
        cards.controllers,
        lambda robot: cards.Controller("ctc_joint", robot),
    ],
)
@pytest.mark.parametrize("robot", ["roboy_arm", None, 3])
def test_what_is_no_robot_is_told_how_to_load_one(call, robot):
    name = robot or "planar_2r"
    refused(lambda: call(robot), rf'cards.load\("{name if isinstance(robot, str) else ""}')


@pytest.mark.parametrize("source", [None, 3, b"planar_2r", [], "a" * 5000])
def test_what_is_no_source_of_a_robot_is_refused(source):
    refused(lambda: cards.load(source), "expected|Known")


@pytest.mark.parametrize("world", [3, None, [], b"table", 1.5])
def test_what_is_no_world_is_told_what_one_is(planar, world):
    refused(lambda: cards.World(world), "the world is .* .expected: the name of a file in worlds/")
    if world is not None:
        refused(lambda: cards.Simulator(planar, world=world), "the world is")
    refused(lambda: cards.World("two_arms", q=3), "q of the world is 3 .expected: .* by the")


def test_the_text_of_a_robot_may_begin_with_a_byte_order_mark(planar):
    with open(planar.source, encoding="utf-8") as file:
        assert cards.load("\ufeff" + file.read()).name == planar.name
    refused(lambda: cards.load("planar_2r", model=3))


@pytest.mark.parametrize("duration", ["1", None, [1], 1j])
def test_a_duration_is_a_number(planar, duration):
    refused(lambda: cards.simulate(cards.Simulator(planar), duration=duration))


def test_simulate_wants_a_simulator_and_a_controller(planar):
    sim = cards.Simulator(planar)
    refused(lambda: cards.simulate(planar, duration=0.1), r"cards.Simulator\(robot\)")
    refused(lambda: cards.simulate(sim, "ctc_joint", duration=0.1), r"cards.Controller")
    refused(lambda: cards.simulate(sim, duration=0.1, on_time=3), "function")


# Models ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("q", ["ab", ["a", "b"], {"joint_1": "a"}, [1j, 0], object(), [[1], 2]])
def test_coordinates_are_numbers(planar, q):
    model = cards.compile(planar)
    for given in ({"q": q}, {"qd": q}):
        with pytest.raises(ShapeError):
            model(**given)


def test_velocities_and_the_start_may_be_given_by_name(planar):
    model = cards.compile(planar)
    np.testing.assert_array_equal(model(qd={"joint_2": 0.5}).C, model(qd=[0.0, 0.5]).C)
    sim = cards.Simulator(planar, q={"joint_1": 0.1})
    np.testing.assert_array_equal(sim.state.q, [0.1, planar.tree.home[1]])


def test_batches_are_checked(planar):
    model = cards.compile(planar)
    refused(lambda: model.batch([[1, 2], [3]]))
    refused(lambda: model.batch("x"))
    for threads in (0, -1, 1.5, "a", None):
        refused(lambda threads=threads: model.batch(np.zeros((3, 2)), threads=threads))


def test_names_that_are_no_texts_are_unknown(planar):
    model = cards.compile(planar)
    refused(lambda: cards.compile(planar, emit=[1]), "no quantity named '1'")
    refused(lambda: cards.compile(planar, emit=[]), "no quantity is named")
    refused(lambda: cards.compile(planar, emit=3))
    refused(lambda: cards.compile(planar, frame="zz"), "no frame or link named 'zz'")
    refused(lambda: model({1: 2.0}), "no joint named '1'")
    run = cards.simulate(cards.Simulator(planar), duration=0.01)
    for name in (3, None, []):
        with pytest.raises(UnknownNameError):
            _ = run[name]
        with pytest.raises(UnknownNameError):
            run.plot(name if name is not None else 3)


def test_threads_share_a_model(planar):
    model = cards.compile(planar)
    rng = np.random.default_rng(0)
    points = rng.normal(size=(4, 1500, 2))
    right = [model.batch(q).M for q in points]
    wrong = []

    def work(i):
        for q, expected in zip(points[i], right[i], strict=True):
            if abs(model(q).M - expected).max() > 1e-9:
                wrong.append(i)

    threads = [threading.Thread(target=work, args=(i,)) for i in range(4)]
    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-5)
    try:
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    finally:
        sys.setswitchinterval(before)
    assert not wrong


# Rods ------------------------------------------------------------------------------------------


def test_a_rod_model_refuses_what_its_tracker_refuses(rods):
    model = cards.compile(rods)
    home = model(rods.home)
    n = rods.n_limbs
    for q in ([0.0], [NAN] * n, [1e6] * n, "abc", ["a"] * n, {"motor_joint_1": [1, 2]}):
        with pytest.raises(CardsError):
            model(q)
    for pose in (np.zeros((4, 4)), np.full((4, 4), NAN), np.eye(3), 5 * np.eye(4), "x"):
        with pytest.raises(CardsError):
            model(pose=pose)
    message = refused(lambda: model(rods.home, wrench=[0.0] * 5), "wrench")
    assert message.count("wrench") == 1
    with pytest.raises(CardsError):  # nor does its wrench act in the next call
        model([NAN] * n, wrench=[1.0, 0, 0, 0, 0, 0])
    np.testing.assert_allclose(model(rods.home).pose, home.pose, atol=1e-9)


def test_rods_have_neither_emit_nor_frame(rods):
    refused(lambda: cards.compile(rods, emit="M"), "neither emit nor frame")
    refused(lambda: cards.compile(rods, frame="tip"), "neither emit nor frame")


@pytest.mark.parametrize("dt", [0, -1e-3, NAN, float("inf"), "a", [1e-3]])
def test_a_rod_simulator_checks_its_time_step(rods, dt):
    refused(lambda: cards.Simulator(rods, dt), "dt")


@pytest.mark.parametrize("substeps", [0, -1, 1.5, "a"])
def test_a_rod_simulator_checks_its_substeps(rods, substeps):
    refused(lambda: cards.Simulator(rods, substeps=substeps), "substeps")


def test_two_rod_runs_are_one(rods):
    whole = cards.simulate(cards.Simulator(rods), duration=0.4)
    sim = cards.Simulator(rods)
    parts = [cards.simulate(sim, duration=d) for d in (0.15, 0.25)]
    for name in ("time", "q", "pose"):
        np.testing.assert_array_equal(np.concatenate([p[name] for p in parts]), whole[name])
    sim.reset()
    again = cards.simulate(sim, duration=0.4)
    np.testing.assert_array_equal(again.q, whole.q)
    np.testing.assert_array_equal(again.time, whole.time)
    assert cards.simulate(cards.Simulator(rods), duration=0.001).time.tolist() == [0.0, 0.01]


# Simulators ------------------------------------------------------------------------------------


def test_a_state_belongs_to_its_reader(planar):
    sim = cards.Simulator(planar)
    q = sim.state.q.copy()
    sim.state.q[:] = 99.0
    state = sim.state
    state.muscle_lengths[:] = 0.0
    np.testing.assert_array_equal(sim.state.q, q)
    assert sim.state.muscle_lengths.all()


def test_after_a_reset_the_run_is_the_same(planar):
    sim = cards.Simulator(planar)
    controller = cards.Controller("ctc_joint", planar, "there_and_back")
    first = cards.simulate(sim, controller, duration=0.1)
    sim.reset()
    again = cards.simulate(sim, controller, duration=0.1)
    other = cards.simulate(cards.Simulator(planar), controller, duration=0.1)
    for name in first.names:
        if name != "loop_us":
            np.testing.assert_array_equal(first[name], again[name], err_msg=name)
            np.testing.assert_array_equal(first[name], other[name], err_msg=name)


def test_a_simulator_runs_once_at_a_time(planar):
    sim = cards.Simulator(planar)
    messages = []

    def once_more(_time):
        with pytest.raises(CardsError, match="already running") as caught:
            cards.simulate(sim, duration=0.01)
        messages.append(str(caught.value))

    cards.simulate(sim, duration=0.4, on_time=once_more, real_time=True)
    assert messages
    cards.simulate(sim, duration=0.01)


@pytest.mark.parametrize(
    "command", [None, 3, "x", {"cable_1": 20.0}, (None,), command_of(["cable_1"], [20.0])[0]]
)
def test_what_is_no_command_is_refused(planar, command):
    refused(lambda: cards.Simulator(planar).submit(command), "CommandPart")


def test_commands_name_muscles_in_a_list_and_each_kind_once(planar):
    sim = cards.Simulator(planar)
    for names in ("cable_1", None, 3):
        refused(lambda names=names: sim.submit(command_of(names, [20.0])), "a list of names")
    part = command_of(["cable_1"], [20.0])
    refused(lambda: sim.submit(part + part), "two parts of the kind 'force'")


# Controllers -----------------------------------------------------------------------------------


def test_numbers_of_numpy_are_numbers(planar):
    for kp in (np.int64(3), np.float32(3), np.array(3), [np.int32(3), np.float32(3)]):
        loop = cards.Controller("ctc_joint", planar, kp=kp)
        np.testing.assert_array_equal(loop.controller.gains.kp, [3.0, 3.0])
    for kp in (True, 1j, object(), {1: 2}, lambda: 1):
        with pytest.raises(ParameterError):
            cards.Controller("ctc_joint", planar, kp=kp)


@pytest.mark.parametrize("name", ["model", "log_dir", "autostart", "state_rate"])
def test_parameters_of_the_node_are_refused(planar, name):
    with pytest.raises(ParameterError, match="one of the node"):
        cards.Controller("ctc_joint", planar, **{name: 1})


def test_a_file_of_references_needs_a_name(planar):
    with pytest.raises(ParameterError, match="no name of a reference"):
        cards.Controller("ctc_joint", planar, reference_file="planar_2r")


class Still:
    size, duration = 2, 1.0

    def __call__(self, t):
        return [0.1, 0.2], [0.0, 0.0], [0, 0]


def test_a_callable_with_size_and_duration_is_a_reference(planar):
    loop = cards.Controller("ctc_joint", planar, Still())
    run = cards.simulate(cards.Simulator(planar), loop, duration=0.02)
    assert len(run) == 20
    other = Still()
    other.size = 3
    refused(lambda: cards.Controller("ctc_joint", planar, other), "3 coordinates")
    for duration in (NAN, -1.0, "a"):
        other = Still()
        other.duration = duration
        refused(lambda other=other: cards.Controller("ctc_joint", planar, other), "duration")


@pytest.mark.parametrize("reference", [0, False, 3, [0, 0], np.zeros(2), lambda t: t, b"x"])
def test_what_is_no_reference_is_refused(planar, reference):
    refused(lambda: cards.Controller("ctc_joint", planar, reference), "y, yd, ydd")


@pytest.mark.parametrize(
    "state",
    [
        None,
        "x",
        RobotState(0.0, np.zeros(3), np.zeros(2)),
        RobotState(0.0, [0.1, 0.2], [0.0, 0.0]),
        RobotState(0.0, None, None),
    ],
)
def test_a_state_of_another_robot_is_refused(planar, state):
    refused(lambda: cards.Controller("ctc_joint", planar).step(state), "the state")


def test_a_time_that_is_not_finite_gives_the_relaxed_command(planar):
    loop = cards.Controller("ctc_joint", planar)
    home = planar.tree.home
    (part,) = loop.step(RobotState(NAN, home.copy(), np.zeros(2)))
    np.testing.assert_array_equal(part.values, loop.controller.relaxed[0].values)
    assert loop.controller.output.status.name == "INVALID_STATE"


class Own(CtcJoint):
    kind = "own"


class Unsuited(Own):
    @classmethod
    def unsuited(cls, robot):
        return "only for snakes"


class Nothing(Own):
    def step(self, state):
        super().step(state)


class OnePart(Own):
    def step(self, state):
        return super().step(state)[0]


class Twice(Own):
    def step(self, state):
        return super().step(state) * 2


class Thoughts(Own):
    commands = ("force", "thoughts")


class Returns(Own):
    @classmethod
    def from_parameters(cls, model, parameters):
        super().from_parameters(model, parameters)


class Clash(Own):
    @classmethod
    def from_parameters(cls, model, parameters):
        made = super().from_parameters(model, parameters)
        parameters.declare([spec for spec in parameters.specs if spec.name == "approach_speed"])
        return made


class Abstract(Controller):
    kind, summary, space = "own", "", "joint"


class Bare(Own):
    def __init__(self, model):
        pass

    @classmethod
    def from_parameters(cls, model, parameters):
        return cls(model)


class BadNames(Own):
    def step(self, state):
        (part,) = super().step(state)
        return (CommandPart("force", ["zz"] * len(part.names), part.values),)


class Steady(Own):
    """Its command is not what it returns."""

    def step(self, state):
        (part,) = super().step(state)
        return (CommandPart("force", part.names[1:], np.full(len(part.names) - 1, 33.0)),)


@pytest.fixture
def offered(monkeypatch):
    """Return what makes a class known as the controller ``own``."""

    def offer(controller):
        entry = EntryPoint("own", f"{__name__}:{controller.__name__}", registry.GROUP)
        monkeypatch.setattr(EntryPoint, "load", lambda _self: controller)
        monkeypatch.setattr(registry, "_offered", lambda: {"own": entry})

    return offer


@pytest.mark.parametrize(
    ("controller", "words"),
    [
        (Unsuited, "cannot drive planar_2r: only for snakes"),
        (Nothing, "answer of controller 'own' is None"),
        (OnePart, "answer of controller 'own' is CommandPart"),
        (Twice, "controller 'own' has two parts"),
        (Thoughts, "'own'.*'thoughts'"),
        (Returns, "controller 'own' is None"),
        (Clash, "parameter 'approach_speed' is declared twice"),
        (Abstract, "'own'.*lacks from_parameters, place"),
        (Bare, "controller 'own' has no model"),
    ],
)
def test_faults_of_a_controller_are_told_by_its_name(planar, offered, controller, words):
    offered(controller)

    def run():
        cards.simulate(cards.Simulator(planar), cards.Controller("own", planar), duration=0.01)

    refused(run, words)


def test_one_bad_controller_does_not_hide_the_others(planar, offered):
    offered(Abstract)
    with pytest.warns(UserWarning, match="controller 'own' is left out"):
        assert cards.controllers(planar) == ["ctc_joint", "ctc_operational", "impedance", "cpg"]


def test_a_run_whose_commands_are_refused_has_failed(planar, offered, tmp_path):
    offered(BadNames)
    with pytest.warns(UserWarning, match="20 commands were refused, the last: no muscle named"):
        run = cards.simulate(
            cards.Simulator(planar), cards.Controller("own", planar), duration=0.02
        )
    summary = run.save(tmp_path / "run")
    assert summary["verdict"] == "failed"
    assert "no muscle named 'zz'" in summary["failures"][0]
    assert run["refused"][-1] == 20
    assert run["accepted"][-1] == 0


def test_the_log_has_what_was_submitted(planar, offered):
    offered(Steady)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        run = cards.simulate(
            cards.Simulator(planar), cards.Controller("own", planar), duration=0.02
        )
    assert (run["command_tensions"][:, 1:] == 33.0).all()
    np.testing.assert_allclose(run["tensions"][1:, 1:], 33.0)


# Files -----------------------------------------------------------------------------------------


def test_the_suffix_is_the_format_of_a_figure(planar, tmp_path):
    run = cards.simulate(cards.Simulator(planar), duration=0.01)
    begins = {"pdf": b"%PDF", "png": b"\x89PNG", "svg": b"<?xml"}
    for suffix, start in begins.items():
        twice = []
        for name in ("one", "two"):
            run.save_plot(tmp_path / f"{name}.{suffix}")
            twice.append((tmp_path / f"{name}.{suffix}").read_bytes())
        assert twice[0].startswith(start)
        assert twice[0] == twice[1]
    refused(lambda: run.save_plot(tmp_path / "x.zz"), r"\.pdf, \.png, \.svg")
    refused(lambda: run.save_plot(tmp_path / "x"), r"\.pdf, \.png, \.svg")
    with pytest.raises(FileNotFoundError):
        run.save_plot(tmp_path / "missing" / "x.png")


@pytest.mark.parametrize("folder", ["", None, 3, "\0"])
def test_a_run_is_saved_under_a_name(planar, rods, folder):
    for robot in (planar, rods):
        run = cards.simulate(cards.Simulator(robot), duration=0.01)
        refused(lambda run=run: run.save(folder), "the path is")


@pytest.mark.parametrize("port", ["a", None, 1.5, 70000])
def test_a_port_is_a_whole_number(planar, port):
    refused(lambda: cards.show(planar, port=port, block=False), "0 to 65535")


def test_a_path_that_is_not_found_is_no_number(monkeypatch):
    monkeypatch.setattr(GeodesicPaths, "lost_muscles", np.array([False, True, False]))
    model = cards.compile(cards.load("wrap_elbow"))
    with pytest.warns(RuntimeWarning, match="no path is found at this state of triceps"):
        state = model(q=[1.0])
    assert np.isnan(state.l).tolist() == [False, True, False]
    assert np.isnan(model.batch([[1.0]]).l).tolist() == [[False, True, False]]
