"""Names, types and quality of service of the CARDS topics and services, in one place.

The names are relative: a namespace moves a whole robot. ``/clock``, ``/diagnostics`` and
``/run_state`` are absolute because there is one of each on a ROS network.
"""

from collections.abc import Mapping

from rclpy.qos import DurabilityPolicy, HistoryPolicy, QoSProfile, ReliabilityPolicy

from cards_core.robot.actuators import CommandKind

JOINT_STATES = "joint_states"
MUSCLE_STATES = "muscle_states"
POSITIONS = "q"
VELOCITIES = "q_dot"
FORCE_COMMAND = "force_command"
LENGTH_COMMAND = "length_command"
PRESSURE_COMMAND = "pressure_command"
EXCITATION_COMMAND = "excitation_command"
EFFORT_COMMAND = "effort_command"
IMPEDANCE_COMMAND = "impedance_command"
ROBOT_DESCRIPTION = "robot_description"
OBJECT_STATES = "object_states"
CONTACTS = "contacts"
CONTACT_FORCES = "contact_forces"
APPLY_WRENCH = "apply_wrench"
MODEL = "model"
CLOCK = "/clock"
DIAGNOSTICS = "/diagnostics"

COMMAND_TOPICS: Mapping[CommandKind, str] = {
    "force": FORCE_COMMAND,
    "length": LENGTH_COMMAND,
    "pressure": PRESSURE_COMMAND,
    "excitation": EXCITATION_COMMAND,
    "effort": EFFORT_COMMAND,
    "impedance": IMPEDANCE_COMMAND,
}
"""Topic of each kind of command."""

COMMAND_FIELDS: Mapping[CommandKind, tuple[str, ...]] = {
    "force": ("effort",),
    "length": ("position",),
    "pressure": ("effort",),
    "excitation": ("effort",),
    "effort": ("effort",),
    "impedance": ("position", "velocity", "effort"),
}
"""Fields of the JointState that have the values: [N], [m], [Pa], 0..1, [Nm] or [N]; of the
impedance law l0 [m], v0 [m/s] and T0 [N]."""

RESET_SERVICE = "sim/reset"
PAUSE_SERVICE = "sim/pause"
STEP_SERVICE = "sim/step"
ESTOP_SERVICE = "~/estop"
CLEAR_SERVICE = "~/clear"
ENABLE_SERVICE = "~/enable"
RESTART_SERVICE = "~/restart"
COMPILE_SERVICE = "~/compile"
REPORT_SERVICE = "~/report"

REFERENCE = "~/reference"
HAND_FORCE = "~/hand_force"
EXTERNAL_WRENCH = "~/external_wrench"
DESIRED = "~/desired"
ERROR = "~/error"
RELAXATION = "~/relaxation"
NECESSARY_TENSION = "~/necessary_tension"

PAGES = "~/pages"
RUN_STATE = "/run_state"

METRICS = "~/metrics"
INTERACTION = "~/interaction"
ESTIMATE = "~/joint_states"

ROD_SOLVER = "rod_solver"
"""Node of a robot of rods; what follows are its topics and services."""

ROD_JOINT_COMMAND = "~/dgm"
ROD_POSE_COMMAND = "~/igm"
ROD_WRENCH = "~/wrench"
ROD_POSE = "~/pose"
ROD_PLATE_WRENCH = "~/plate_wrench"
ROD_STATE = "~/state"
ROD_STATUS = "~/status"
ROD_SHAPES = "~/shapes"
ROD_MARKERS = "~/rods"
ROD_STATES = "~/states"
SAVE_STATE = "~/save_state"
LOAD_STATE = "~/load_state"
DELETE_STATE = "~/delete_state"
HOME_SERVICE = "~/home"
STOP_SERVICE = "~/stop"
SOLVE_SERVICE = "~/solve"
ACCEPT_SERVICE = "~/accept_branch"
RESTORE_SERVICE = "~/restore"
PLAY_SERVICE = "~/play"


def _profile(depth: int, *, reliable: bool = True, latched: bool = False) -> QoSProfile:
    return QoSProfile(
        history=HistoryPolicy.KEEP_LAST,
        depth=depth,
        reliability=ReliabilityPolicy.RELIABLE if reliable else ReliabilityPolicy.BEST_EFFORT,
        durability=DurabilityPolicy.TRANSIENT_LOCAL if latched else DurabilityPolicy.VOLATILE,
    )


STATE_QOS = _profile(1)
"""States: only the newest matters."""

STATE_INPUT_QOS = _profile(1, reliable=False)
"""For controllers that read states. Another state follows, and a host that waits for an answer
repeats its own; acknowledgements would take a quarter of the time of a step in lockstep."""

COMMAND_QOS = _profile(1)
"""Commands and references: as states."""

LATCHED_QOS = _profile(1, latched=True)
"""Data sent once and wanted by whoever comes later, e.g. ``robot_description``."""

MODEL_QOS = _profile(32, latched=True)
"""For readers of ``model``: as many as may have something to say; each has said it once."""

DRAWING_QOS = _profile(1, reliable=False)
"""For readers that only draw: a lost message is no loss."""

RECENT_QOS = _profile(10, reliable=False)
"""For readers that look now and then and need the states of one instant from two topics."""

WRENCH_QOS = _profile(10)
"""``apply_wrench``, ``contact_forces``, ``hand_force``, ``external_wrench``: those of several
bodies come at once, and all must arrive."""

CLOCK_QOS = _profile(1, reliable=False)
"""``/clock`` as ROS subscribes to it."""

DIAGNOSTICS_QOS = _profile(10)
"""``/diagnostics``: a short history so that a burst of changes is not lost."""
