"""A board on the bench, in Python and in scripted time: knows the truth, answers as a real one."""

from __future__ import annotations

import numpy as np

from cards_hardware.boards.handshake import Ident
from cards_hardware.boards.telemetry import BoardSample
from cards_hardware.errors import RequestError
from cards_hardware.protocol.enums import CalibrateAction, Caps, State
from cards_hardware.protocol.enums import ParameterId as P

RATE = 500.0


class BenchBoard:
    """Sensors with unknown zero points in front of a robot that stands where it is put.

    Attributes:
        q: Where the robot is.
        tensions: True ones, [N].
        load_noise: [N]
        sign: Of the encoders as they are mounted; the board assumes ``ENCODER_SIGN``.
        joint_sign: The same of the joint sensors.
    """

    def __init__(self, dynamics, layout, seed=0):
        rng = np.random.default_rng(seed)
        m, j = len(layout.muscles), len(layout.position_rows)
        self.layout = layout
        self.dynamics = dynamics
        self.q = dynamics.tree.home.copy()
        self.tensions = np.zeros(m)
        self.load_noise = 0.3
        self.sign = np.ones(m)
        self.joint_sign = np.ones(j)
        self.state = State.DISARMED
        self.refuse = False
        self.valid = np.ones(m, dtype=bool)
        self.motion = lambda _t: None
        self.saved = None
        self.on_sample = None
        self.sample = None
        self.ident = Ident("1.0.0", 1, "0011223344556677", m, j, Caps(0), 0, 1, 1, True, 5)
        self.time = 100.0
        self.number = 0
        self._rng = rng
        self.true_load_zero = rng.integers(-200, 200, m)
        self.true_offset = rng.integers(-300_000, 300_000, m)  # um
        self.true_joint_zero = rng.integers(-500_000, 500_000, j)
        self.memory = {(P.CALIBRATION, 0): 0}
        for i in range(m):
            self.memory |= {
                (P.LOAD_SCALE, i): 50,
                (P.LOAD_ZERO, i): 0,
                (P.ENCODER_SCALE, i): 347,
                (P.ENCODER_SIGN, i): 1,
                (P.LENGTH_OFFSET, i): 0,
            }
        for i in range(j):
            self.memory |= {(P.JOINT_SCALE, i): 6000, (P.JOINT_ZERO, i): 0}

    # What a board measures ----------------------------------------------------------------------

    def _column(self, parameter, count):
        return np.array([self.memory[parameter, i] for i in range(count)], dtype=float)

    def counts(self):
        """Load, encoder and joint counts of now."""
        m, j = len(self.layout.muscles), len(self.layout.position_rows)
        noise = self.load_noise * self._rng.standard_normal(m)
        load = np.round((self.tensions + noise) / 50e-3) + self.true_load_zero
        state = self.dynamics.update(self.q, np.zeros(self.dynamics.tree.nv))
        length = state.muscle_lengths[self.layout.muscle_rows] - self.true_offset * 1e-6
        encoder = np.round(self.sign * length / 347e-9)
        joint = self.joint_sign * np.round(self.q[self.layout.position_rows] / 6000e-9)
        return load, encoder, joint[:j] + self.true_joint_zero

    def measure(self):
        """One sample in SI, with the parameters that the board has."""
        m, j = len(self.layout.muscles), len(self.layout.position_rows)
        load, encoder, joint = self.counts()
        tensions = (load - self._column(P.LOAD_ZERO, m)) * self._column(P.LOAD_SCALE, m) * 1e-3
        scale = self._column(P.ENCODER_SIGN, m) * self._column(P.ENCODER_SCALE, m) * 1e-9
        lengths = scale * encoder + self._column(P.LENGTH_OFFSET, m) * 1e-6
        angles = (joint - self._column(P.JOINT_ZERO, j)) * self._column(P.JOINT_SCALE, j) * 1e-9
        return np.where(self.valid, tensions, np.nan), lengths, angles

    def wait(self, seconds):
        """Let time pass: samples at 500 Hz."""
        for _ in range(round(seconds * RATE)):
            self.time += 1.0 / RATE
            self.number += 1
            self.motion(self.time)
            tensions, lengths, angles = self.measure()
            m, j = len(tensions), len(angles)
            self.sample = BoardSample(
                self.time,
                self.time,
                0,
                self.number,
                int(self.state),
                0,
                0,
                np.array([lengths, np.zeros(m), tensions, np.zeros(m)]),
                np.array([angles, np.zeros(j)]),
            )
            if self.on_sample is not None:
                self.on_sample(self.sample)

    # What a board is asked ----------------------------------------------------------------------

    def open(self):
        """A new session, in which it has what flash has."""
        self.memory |= self.saved or {}

    def get_parameter(self, parameter, index=0):
        return self.memory[P(parameter), index]

    def set_parameter(self, parameter, index, value):
        assert isinstance(value, int)
        self.memory[P(parameter), index] = value

    def save_parameters(self):
        self.saved = dict(self.memory)

    def calibrate(self, action, channels, values=None):
        if self.refuse or self.state != State.DISARMED:
            raise RequestError("arm", "/dev/x", "CALIBRATE", "refused: state", code=4)
        load, encoder, joint = self.counts()
        for i, value in zip(channels, values or [0] * len(channels), strict=True):
            if action == CalibrateAction.TENSION_ZERO:
                self.memory[P.LOAD_ZERO, i] = int(load[i])
            elif action == CalibrateAction.LENGTH:
                raw = self.memory[P.ENCODER_SIGN, i] * 0.347 * encoder[i]
                self.memory[P.LENGTH_OFFSET, i] = round(value - raw)
            else:
                scale = self.memory[P.JOINT_SCALE, i] * 1e-9
                self.memory[P.JOINT_ZERO, i] = round(joint[i] - value * 1e-6 / scale)
