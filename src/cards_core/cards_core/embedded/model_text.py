"""C text of the model of a robot: the kernels that `CompiledDynamics` has, on plain numbers."""

from __future__ import annotations

from dataclasses import dataclass

from cards_core.codegen.emit import Precision, emit_function, entry_point, preamble
from cards_core.codegen.kernel import Kernel, Layout, kernel_function, layout_of
from cards_core.dynamics.symbolic import symbolic_kernels
from cards_core.embedded import c_text
from cards_core.robot.model import Robot

STATE, FRAME = "state_kernel", "frame_kernel"
"""Names of the C functions, without ``cards_`` before them."""

_QUIET = """\
/* what is unused is what this robot does not need */
#if defined(__GNUC__)
#pragma GCC diagnostic ignored "-Wunused-function"
#pragma GCC diagnostic ignored "-Wunused-parameter"
#endif
"""


@dataclass(frozen=True)
class ModelText:
    """The C text of a model.

    Attributes:
        text: Of the file.
        state, frame: Layouts of the buffers; the frame's is None where it is not needed.
        operations: Scalar operations of one step.
    """

    text: str
    state: Layout
    frame: Layout | None
    operations: int

    @property
    def places(self) -> str:
        """Constants that say where the quantities of the model are in its buffers."""
        text = "\n/* The model: buffers of inputs q, qd and then outputs. */\n"
        text += f"void cards_{STATE}(cards_real *io);\nvoid cards_{FRAME}(cards_real *io);\n"
        state = {
            "MASS": "mass_matrix",
            "CORIOLIS": "coriolis",
            "GRAVITY": "gravity",
            "LENGTHS": "muscle_lengths",
            "JACOBIAN": "muscle_jacobian",
        }
        frame = {"POSITION": "position", "JACOBIAN": "jacobian", "BIAS": "bias"}
        return text + _slots("STATE", self.state, state) + _slots("FRAME", self.frame, frame)


def model_text(robot: Robot, frame: str | None, precision: Precision) -> ModelText:
    """Return the C text of ``cards_state_kernel`` and ``cards_frame_kernel``.

    Each is ``void f(R *io)`` on a buffer of inputs q, qd and then outputs.

    Args:
        robot: With the muscles that are commanded.
        frame: Name of the frame of the task; None: the second function does nothing.
        precision: Of all numbers.
    """
    kernels = symbolic_kernels()
    text = _QUIET + preamble(1, precision)
    update: Kernel = kernels.robot_kernel(robot, "update")
    parts, state, operations = _function(update, STATE)
    text += parts
    place: Layout | None = None
    if frame is None:
        text += f"void cards_{FRAME}(R *io);\nvoid cards_{FRAME}(R *io) {{ (void)io; }}\n"
    else:
        parts, place, more = _function(kernels.frame_kernel(robot, frame), FRAME)
        text, operations = text + parts, operations + more
    return ModelText(text, state, place, operations)


def _function(kernel: Kernel, symbol: str) -> tuple[str, Layout, int]:
    layout = layout_of(kernel)
    function = kernel_function(kernel, symbol)
    emitted = emit_function(function, symbol, layout)
    text = "\n".join([*emitted.parts, emitted.main, entry_point(symbol, layout, 1)])
    return text, layout, int(function.n_instructions())


def _slots(prefix: str, layout: Layout | None, titles: dict[str, str]) -> str:
    starts = {slot.name: slot.start for slot in layout.outputs} if layout else {}
    # without a frame its functions are never called, but they are there
    size = "(CARDS_COORDINATES + CARDS_VELOCITIES)" if layout is None else layout.size
    text = c_text.define(f"{prefix}_NUMBERS", size)
    for name, title in titles.items():
        text += c_text.define(f"{prefix}_{name}", starts.get(title, 0))
    return text
