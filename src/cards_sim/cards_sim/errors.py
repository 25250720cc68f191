"""Errors of the simulator."""

from __future__ import annotations

from cards_core.errors import CardsError


class SimulationStoppedError(CardsError):
    """The physics produced a state that means nothing; the world has stopped.

    The simulator keeps the last good state and refuses to step until it is reset.

    Args:
        problem: What MuJoCo found.
        step: Number of the step that failed, the first one is 1.
        time: Simulated time at its start, [s].
        joint: Joint concerned, if known.
        body: Body that this joint moves, if known.
    """

    def __init__(
        self, problem: str, *, step: int, time: float, joint: str | None, body: str | None
    ) -> None:
        self.problem = problem
        self.step = step
        self.time = time
        self.joint = joint
        self.body = body
        place = f" at joint '{joint}', body '{body}'" if joint else ""
        super().__init__(
            f"simulation stopped in step {step} (t = {time:.6g} s): {problem}{place}; "
            "reset the simulator, and use a smaller time step, more inertia or smaller tensions"
        )
