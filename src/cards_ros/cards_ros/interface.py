"""What is on the topics, services and diagnostics of all nodes: the source of the documentation.

Names and quality of service are those of `cards_ros.topics`. Tests compare the declarations with
what the nodes create and publish.
"""

from __future__ import annotations

from dataclasses import dataclass

from cards_ros import topics


@dataclass(frozen=True)
class Topic:
    """A topic.

    Attributes:
        name: As in `cards_ros.topics`; ``~`` is the name of the node.
        node: The node that ``~`` stands for; empty for other names.
        type: Message types, ``package/Message``.
        content: What a message holds, in Markdown.
        route: Who publishes ``->`` who subscribes; nothing: anybody.
        qos: Quality of service, a row of the table in ``docs/ros_interface.md``.
    """

    name: str
    node: str
    type: tuple[str, ...]
    content: str
    route: str
    qos: str

    @property
    def full_name(self) -> str:
        """The name with that of the node in it."""
        return self.name.replace("~", self.node)


@dataclass(frozen=True)
class Service:
    """A service.

    Attributes:
        name: As in `cards_ros.topics`; ``~`` is the name of the node.
        node: The node that offers it.
        type: Service type, ``package/Service``.
        action: What it does, in Markdown.
    """

    name: str
    node: str
    type: str
    action: str

    @property
    def full_name(self) -> str:
        """The name with that of the node in it."""
        return self.name.replace("~", self.node)


_JOINT_STATE = ("sensor_msgs/JointState",)
_STRING = ("std_msgs/String",)
_ARRAY = ("std_msgs/Float64MultiArray",)
_MULTI_DOF = ("sensor_msgs/MultiDOFJointState",)
_WRENCH = ("geometry_msgs/WrenchStamped",)
_POSE = ("geometry_msgs/PoseStamped",)
_MARKERS = ("visualization_msgs/MarkerArray",)
_TRIGGER = "std_srvs/Trigger"
_SET_BOOL = "std_srvs/SetBool"

_WHICH_MODEL = "host, controller, model_compiler, live_analysis -> all of them"

TOPICS = (
    Topic(
        topics.JOINT_STATES,
        "",
        _JOINT_STATE,
        "name, position, velocity; effort of the joint motors [Nm or N], empty for robots without "
        "any",
        "host ->",
        "state",
    ),
    Topic(
        topics.MUSCLE_STATES,
        "",
        _JOINT_STATE,
        "name, position = length [m], velocity = rate [m/s], effort = tension [N]; after the "
        "muscles one entry per actuator state, e.g. `biceps/activation`, with its value in "
        "position ([muscles.md](muscles.md))",
        "host ->",
        "state",
    ),
    Topic(
        topics.POSITIONS,
        "",
        _ARRAY,
        "coordinates in the order of `joint_states`, without names and stamp",
        "host ->",
        "state",
    ),
    Topic(
        topics.VELOCITIES,
        "",
        _ARRAY,
        "velocities in the order of `joint_states`, without names and stamp",
        "host ->",
        "state",
    ),
    Topic(
        topics.FORCE_COMMAND, "", _JOINT_STATE, "name, effort = tension [N]", "-> host", "command"
    ),
    Topic(
        topics.LENGTH_COMMAND,
        "",
        _JOINT_STATE,
        "name, position = rest length [m]",
        "-> host",
        "command",
    ),
    Topic(
        topics.PRESSURE_COMMAND,
        "",
        _JOINT_STATE,
        "name, effort = pressure above atmosphere [Pa]",
        "-> host",
        "command",
    ),
    Topic(
        topics.EXCITATION_COMMAND,
        "",
        _JOINT_STATE,
        "name, effort = excitation 0..1",
        "-> host",
        "command",
    ),
    Topic(
        topics.IMPEDANCE_COMMAND,
        "",
        _JOINT_STATE,
        "name, position = l0 [m], velocity = v0 [m/s], effort = T0 [N]: set-points of the "
        "[impedance law](muscles.md#the-impedance-law). An empty array, or NaN, keeps the "
        "previous set-point",
        "-> host",
        "command",
    ),
    Topic(
        topics.EFFORT_COMMAND,
        "",
        _JOINT_STATE,
        "name of a coordinate with a [motor](description.md#joint-motors), effort [Nm or N]",
        "-> host",
        "command",
    ),
    Topic(topics.ROBOT_DESCRIPTION, "", _STRING, "URDF", "host ->", "latched"),
    Topic(
        topics.MODEL,
        "",
        _STRING,
        "JSON: which model a node has, see [which model](ros_interface.md#which-model)",
        _WHICH_MODEL,
        "model",
    ),
    Topic(
        topics.OBJECT_STATES,
        "",
        _MULTI_DOF,
        "poses and velocities of objects, see [the world](ros_interface.md#the-world)",
        "simulator ->",
        "state",
    ),
    Topic(
        topics.CONTACTS,
        "",
        _MULTI_DOF,
        "points where bodies touch, see [the world](ros_interface.md#the-world)",
        "simulator ->",
        "state",
    ),
    Topic(
        topics.CONTACT_FORCES,
        "",
        _WRENCH,
        "what touches the links of a robot, see the [world](ros_interface.md#the-world)",
        "simulator ->",
        "wrench",
    ),
    Topic(
        topics.APPLY_WRENCH,
        "",
        _WRENCH,
        "pushes a body of the [world](ros_interface.md#the-world)",
        "-> simulator",
        "wrench",
    ),
    Topic(
        topics.CLOCK,
        "",
        ("rosgraph_msgs/Clock",),
        "simulated time; the real robot has none",
        "simulator ->",
        "clock",
    ),
    Topic(
        topics.REFERENCE,
        "<controller>",
        ("trajectory_msgs/JointTrajectory", "geometry_msgs/PoseStamped"),
        "what to track: JointTrajectory for references in joint space (`ctc_joint`), PoseStamped "
        "in operational space (`ctc_operational`)",
        "-> controller",
        "command",
    ),
    Topic(
        topics.HAND_FORCE,
        "<controller>",
        _WRENCH,
        "force and moment that a link is to exert (`ctc_joint`, `ctc_operational`, `mrc`), see "
        "[external forces](ros_interface.md#external-forces)",
        "-> controller",
        "wrench",
    ),
    Topic(
        topics.EXTERNAL_WRENCH,
        "<controller>",
        _WRENCH,
        "force and moment that act on a link, likewise: minus this on `hand_force`",
        "-> controller",
        "wrench",
    ),
    Topic(
        topics.DESIRED,
        "<controller>",
        _JOINT_STATE,
        "position = desired value, velocity = its derivative",
        "controller ->",
        "state",
    ),
    Topic(
        topics.ERROR,
        "<controller>",
        _JOINT_STATE,
        "position = desired minus actual",
        "controller ->",
        "state",
    ),
    Topic(
        topics.RELAXATION,
        "<controller>",
        _JOINT_STATE,
        "position = released length of each muscle [m] (`mrc`)",
        "controller ->",
        "state",
    ),
    Topic(
        topics.NECESSARY_TENSION,
        "<controller>",
        _JOINT_STATE,
        "effort = tension that each muscle needs [N] (`mrc`)",
        "controller ->",
        "state",
    ),
    Topic(
        topics.METRICS,
        "live_analysis",
        _JOINT_STATE,
        "name = `analysis/column`, position = value, NaN without an answer",
        "live_analysis ->",
        "state",
    ),
    Topic(
        topics.INTERACTION,
        "live_analysis",
        _JOINT_STATE,
        "name = `joint/fx` ... `joint/mz`, effort = force [N] and moment [Nm] in the joint",
        "live_analysis ->",
        "state",
    ),
    Topic(
        topics.ESTIMATE,
        "<node>",
        _JOINT_STATE,
        "pose estimated from muscle lengths: position, velocity",
        "live_analysis, joint_estimator, mrc ->",
        "state",
    ),
    Topic(
        topics.PAGES,
        "browser_view",
        ("std_msgs/Int32",),
        "how many browsers show the page and have drawn the robot; 0 as soon as the page answers",
        "browser_view ->",
        "latched",
    ),
    Topic(
        topics.RUN_STATE,
        "",
        _STRING,
        'state of the run, which pages show instead of "running": `finished: results in runs/...`',
        "`./cards demo` -> browser_view",
        "latched",
    ),
    Topic(
        topics.DIAGNOSTICS,
        "",
        ("diagnostic_msgs/DiagnosticArray",),
        "health, once a second and at once on change; a status is called `<node>: <aspect>`, the "
        "node with its namespace: `left_arm/simulator: world`",
        "all ->",
        "diagnostics",
    ),
)
"""Topics of robots with muscles, and those of all nodes."""

ROD_TOPICS = (
    Topic(
        topics.ROD_JOINT_COMMAND,
        topics.ROD_SOLVER,
        _JOINT_STATE,
        "name (of joints or limbs; none: all in order), position = target; the others keep their "
        "targets",
        "-> node",
        "command",
    ),
    Topic(
        topics.ROD_POSE_COMMAND,
        topics.ROD_SOLVER,
        _POSE,
        "target of the plate; `frame_id` empty, `world` or the robot's name. With fewer than six "
        "limbs only the controlled coordinates count",
        "-> node",
        "command",
    ),
    Topic(
        topics.ROD_WRENCH,
        topics.ROD_SOLVER,
        _WRENCH,
        "load on the plate about its origin; `frame_id` empty or `world`: keeps its direction, "
        "`plate` or the plate's link: turns with it",
        "-> node",
        "command",
    ),
    Topic(topics.SAVE_STATE, topics.ROD_SOLVER, _STRING, "name of a state", "-> node", "command"),
    Topic(
        topics.LOAD_STATE,
        topics.ROD_SOLVER,
        _STRING,
        "name of a state, or a state as JSON",
        "-> node",
        "command",
    ),
    Topic(
        topics.DELETE_STATE, topics.ROD_SOLVER, _STRING, "name of a state", "-> node", "command"
    ),
    Topic(topics.ROD_POSE, topics.ROD_SOLVER, _POSE, "plate in `world`", "node ->", "state"),
    Topic(
        topics.ROD_PLATE_WRENCH,
        topics.ROD_SOLVER,
        _WRENCH,
        "all rods on the plate, about its origin, in `world`",
        "node ->",
        "state",
    ),
    Topic(
        topics.ROD_STATE,
        topics.ROD_SOLVER,
        _JOINT_STATE,
        "name, position = value: all numbers of a step, see "
        "[`rod_solver`](ros_interface.md#node-rod_solver)",
        "node ->",
        "state",
    ),
    Topic(
        topics.ROD_STATUS,
        topics.ROD_SOLVER,
        _STRING,
        "JSON, when it changes: status in words, see "
        "[`rod_solver`](ros_interface.md#node-rod_solver)",
        "node ->",
        "latched",
    ),
    Topic(
        topics.ROD_STATES,
        topics.ROD_SOLVER,
        _STRING,
        "JSON, when it changes: the saved states by name",
        "node ->",
        "latched",
    ),
    Topic(
        topics.ROD_SHAPES,
        topics.ROD_SOLVER,
        ("sensor_msgs/PointCloud2",),
        "centre lines: height = limbs, width = points, float64 fields x, y, z [m], curvature "
        "[1/m], stress [Pa], strain; at `draw_rate` while something moves, else twice a second",
        "node ->",
        "state",
    ),
    Topic(
        topics.ROD_MARKERS,
        topics.ROD_SOLVER,
        _MARKERS,
        "the same for RViz (`config/rods.rviz`), with plate, base joints and load",
        "node ->",
        "state",
    ),
)
"""Topics of robots of rods, beside ``joint_states``: position = q, velocity = its difference
quotient, effort = what the actuators of the base joints carry [N, Nm]."""

SERVICES = (
    Service(
        topics.RESET_SERVICE,
        "simulator",
        _TRIGGER,
        "back to time zero and the initial positions; releases the emergency stop; begins the "
        "next part of the log",
    ),
    Service(
        topics.PAUSE_SERVICE, "simulator", _SET_BOOL, "stops time (true) or lets it go on (false)"
    ),
    Service(
        topics.STEP_SERVICE,
        "simulator",
        _TRIGGER,
        "one step while paused; in lockstep as soon as the state is answered",
    ),
    Service(
        topics.ESTOP_SERVICE,
        "simulator",
        _TRIGGER,
        "every muscle that was commanded gets its minimum tension at once, every motor zero "
        "effort, commands are refused until `sim/reset`; time goes on",
    ),
    Service(
        topics.ESTOP_SERVICE,
        "hardware",
        _TRIGGER,
        "in every state, also during a transition: all boards go to their safe tensions at once "
        "and latch that. Boards that are not connected get it first when they are; in "
        "unconfigured their ports are opened for it",
    ),
    Service(
        topics.CLEAR_SERVICE,
        "hardware",
        _TRIGGER,
        "releases latched stops and faults whose cause is gone; arms nothing",
    ),
    Service(
        topics.ENABLE_SERVICE,
        "<controller>",
        _SET_BOOL,
        "answer states (true) or not (false: the host's watchdog acts); enabling restarts the "
        "reference, and fails while the host has another model",
    ),
    Service(
        topics.ESTOP_SERVICE,
        "<controller>",
        _TRIGGER,
        "sends the minimum tensions and zero efforts once, then disables",
    ),
    Service(
        topics.RESTART_SERVICE,
        "<controller>",
        _TRIGGER,
        "restarts the reference with the next state",
    ),
    Service(
        topics.COMPILE_SERVICE,
        "model_compiler",
        _TRIGGER,
        "compiles the robot of the parameter `model`; the answer's message is the report of "
        "`./cards compile --json` for one robot, or an error as JSON",
    ),
    Service(
        topics.REPORT_SERVICE,
        "live_analysis",
        _TRIGGER,
        "the answer's message is a JSON report about the last state, or an error as JSON",
    ),
)
"""Services of the nodes of robots with muscles."""

ROD_SERVICES = (
    Service(
        topics.SOLVE_SERVICE,
        topics.ROD_SOLVER,
        _TRIGGER,
        "goes to the command at once, for at most `solve_timeout`; the answer's message is a JSON "
        "report with status, q, pose, wrenches and stiffness",
    ),
    Service(
        topics.STOP_SERVICE, topics.ROD_SOLVER, _TRIGGER, "the present state becomes the target"
    ),
    Service(
        topics.HOME_SERVICE,
        topics.ROD_SOLVER,
        _TRIGGER,
        "back to the start state and its load, at once",
    ),
    Service(
        topics.SAVE_STATE,
        topics.ROD_SOLVER,
        _TRIGGER,
        "as the topic, with the name in the parameter `state_name`; answers with the state as "
        "JSON",
    ),
    Service(
        topics.LOAD_STATE,
        topics.ROD_SOLVER,
        _TRIGGER,
        "as the topic, with the name in the parameter `state_name`",
    ),
    Service(
        topics.ACCEPT_SERVICE,
        topics.ROD_SOLVER,
        _TRIGGER,
        "after BRANCH_CHANGED: go on with the other equilibrium",
    ),
    Service(
        topics.RESTORE_SERVICE,
        topics.ROD_SOLVER,
        _TRIGGER,
        "back to the state before BRANCH_CHANGED, or before a state was loaded",
    ),
    Service(
        topics.PLAY_SERVICE,
        topics.ROD_SOLVER,
        _SET_BOOL,
        "starts the demo motion from the start state (circle, tilt, joints, push; repeated), or "
        "ends it where it is",
    ),
)
"""Services of robots of rods."""

_MODEL_KEYS = {
    "hash": "hash of the node's model",
    "others": "number of other nodes that announced a model",
}
_COST_KEYS = {
    "plugin_us_per_step": "mean time of a step of the plugin in Gazebo [us]",
    "plugin_us_per_step_p99": "99th percentile of it [us]",
}

DIAGNOSTICS: dict[str, dict[str, dict[str, str]]] = {
    "simulator": {
        "world": {
            "time": "simulated time [s]",
            "mode": "how time advances",
            "contacts": "contact points of the last step (MuJoCo)",
            "grasped": "grasped bodies, LINK/BODY (MuJoCo)",
            "wrench_refused": "why the last `apply_wrench` was refused (MuJoCo)",
            "model": "the robot's model in the world (Gazebo)",
            "path_failures": "muscle paths over surfaces that could not be solved since the reset",
        },
        "commands": {
            "accepted": "commands accepted since the reset",
            "refused": "commands refused since the reset",
        },
        "loop": {
            "step_rate_hz": "steps per second of real time",
            "realtime_factor": "simulated time per real time",
            "missed_deadlines": "steps that were late (MuJoCo)",
            "dropped_deadlines": "deadlines given up because time was too late (MuJoCo)",
            **_COST_KEYS,
        },
        "model": _MODEL_KEYS,
    },
    "hardware": {
        "boards": {
            "lifecycle": "lifecycle state of the node",
            "connected": "number of boards that are connected",
            "boards": "number of boards in the boards file",
            "lines_scheduled": "how the threads of the lines are scheduled: fifo, nice or normal",
        },
        "board <name>": {
            "port": "serial port",
            "node": "address of the board",
            "firmware": "version of its firmware",
            "state": "state of the board",
            "simulated": "whether the board is emulated",
            "faults": "faults of the board",
            "vbus": "motor supply [V]",
            "hottest": "hottest muscle and its temperature [degC]",
            "rx_ok": "frames that the board received",
            "rx_crc": "frames that the board received damaged",
            "rx_gap": "frames that the board missed",
            "tx_dropped": "frames that the board could not send",
            "drive_errors": "errors on the drive bus",
            "tick_late": "control ticks of the board that were late",
            "tick_max_us": "longest control tick [us]",
            "crc_errors": "frames received damaged here",
            "lost_frames": "frames missed here",
            "reconnects": "times that the port was opened again",
            "resets": "times that the board restarted",
            "rtt_ms": "round trip time [ms]",
            "clock_error_ms": "uncertainty of the board's clock [ms]",
            "state_rate_hz": "states received per second",
            "state_age_ms": "age of the last state [ms]",
            "state_delay_p50_ms": "median time from measurement to reception [ms]",
            "state_delay_p99_ms": "99th percentile of it [ms]",
            "command_latency_p50_ms": "median time from here to the board's control loop [ms]",
            "command_latency_p99_ms": "99th percentile of it [ms]",
            "heartbeat_gap_max_ms": "longest time between two heartbeats to the board [ms]",
            "heartbeat_jitter": "histogram of how far the times between heartbeats are off 5 ms",
            "reply_max_ms": "longest round trip to the board [ms]",
            "replies": "histogram of round trips",
            "muscle <name>": "flags of a muscle; only while it has any",
            "refused_<cause>": "frames that the board refused, by cause; only if there were any",
        },
        "commands": {
            "accepted": "commands accepted",
            "refused": "commands refused",
            "ignored": "commands received while the node was not active",
        },
        "loop": {
            "state_rate_hz": "states published per second",
            "command_rate_hz": "commands sent per second",
            "states_skipped": "states that were incomplete or not newer",
            "state_age_p50_ms": "median time from measurement to publication [ms]",
            "state_age_p99_ms": "99th percentile of it [ms]",
            "command_p50_us": "median time from message to link [us]",
            "command_p99_us": "99th percentile of it [us]",
            "commands_replaced": "commands that a newer one replaced before the lines were free",
            "commands_stale": "commands that got too old before all lines were free; not sent",
            "commands_withheld": "commands that one board could not take, so that none got them",
        },
        "model": _MODEL_KEYS,
    },
    "<controller>": {
        "states": {},
        "control": {
            "steps_not_ok": "steps of the last second whose status was not OK",
            "residual_max": "largest residual of these steps",
            "native": "whether usual steps are compiled code: yes, or no and the reason",
        },
        "loop": {
            "rate_hz": "answers per second",
            "loop_p50_us": "median time of an answer [us]",
            "loop_p99_us": "99th percentile of it [us]",
            "missed_deadlines": "states that were not answered in time",
        },
        "model": _MODEL_KEYS,
    },
    "joint_estimator": {
        "states": {},
        "estimate": {
            "time": "time of the estimate [s]",
            "std_max": "largest standard deviation of a coordinate [rad or m]",
            "least_known": "the coordinate with this standard deviation",
            "offset_max": "largest estimated offset of a length sensor [m]",
            "offset_std_max": "largest standard deviation of these offsets [m]",
        },
        "model": _MODEL_KEYS,
    },
    "model_compiler": {
        "compiler": {
            "hash": "hash of the compiled model",
            "instructions": "number of instructions of the expressions",
            "bytes": "size of the library",
            "seconds": "time it took [s]",
            "cached": "whether the library was in the cache",
            "path": "file of the library",
        },
        "model": _MODEL_KEYS,
    },
    "live_analysis": {
        "states": {
            "time": "stamp of the last state [s]",
            "time_difference": "between the stamps of joints and muscles [s]",
        },
        "conditions": {"<condition>": "status and values of each condition, in words"},
        "forward_kinematics": {
            "status": "status of the answer",
            "residual": "remaining difference of lengths [m]",
            "difference": "largest difference from `joint_states` [rad or m]",
            "limit": "parameter `difference_limit`; only while it is exceeded",
        },
        "loop": {
            "rate_hz": "publications per second",
            "cpu_percent": "processor time of the node [%]",
            "<analysis>_ms": "time of the last run of each analysis [ms]",
        },
        "model": _MODEL_KEYS,
    },
    topics.ROD_SOLVER: {
        "robot": {
            "held": "whether the robot no longer follows its command",
            "mode": "kind of the last command: joints or pose",
            "min_eigenvalue": "smallest eigenvalue of the plate's stiffness",
            "start_eigenvalue": "the same at the start",
            "condition": "condition number of the joints' effect on the plate",
            "residual": "scaled residual of the equilibrium",
            "remaining": "part of the command that is not done yet, 0..1",
        },
        "commands": {"refused": "commands refused"},
        "loop": {
            "rate_hz": "steps per second",
            "step_p50_us": "median time of a step [us]",
            "step_p99_us": "99th percentile of it [us]",
            "solve_us": "time of the last solve [us]",
            "iterations": "Newton steps of the last solve",
            "skipped": "steps left out because others took too long",
        },
        "world": {
            "steps": "steps of the world (Gazebo)",
            "plate_lag": "distance of the plate from its equilibrium [m] (Gazebo)",
            **_COST_KEYS,
        },
    },
}
"""Keys of the statuses on ``/diagnostics``: by node, by aspect, with their meaning and unit.

``<...>`` in a key stands for a name that depends on the robot.
"""
