"""What the compiled steps of all controllers share: their text, their setup, and who refuses them.

A controller's step exists twice. The Python form is the reference, and takes every step that the
compiled one does not *settle*: what is not finite, solvers that fail, the exceptions of each kind.
The compiled form changes nothing that lasts before it knows that it settles the step.
"""

from __future__ import annotations

import ctypes
from collections.abc import Iterable, Sequence
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from cards_core.codegen.library import load_library
from cards_core.codegen.model import BoundKernel
from cards_core.dynamics.compiled import CompiledDynamics
from cards_core.dynamics.interface import Dynamics
from cards_core.errors import CardsError, CompilationError

NATIVE = Path(__file__).parent / "native"


class NotNativeError(CardsError):
    """A step cannot be one call; the message is the reason."""


def members(kind: Any, *names: str) -> list[tuple[str, Any]]:
    """Return fields of a `ctypes.Structure` that are of one type."""
    return [(name, kind) for name in names]


def place(setup: ctypes.Structure, keep: list[Any], **arrays: npt.NDArray[Any]) -> None:
    """Let members of a setup point at arrays.

    Args:
        setup: A structure of the C text.
        keep: Is given the arrays, which must live as long as the setup.
        **arrays: By the names of the members.

    Raises:
        NotNativeError: An array is not contiguous, or of numbers that the text does not read.
    """
    for name, array in arrays.items():
        if not array.flags.c_contiguous:
            raise NotNativeError(f"{name} is not contiguous")
        if array.dtype not in (np.float64, np.int_, np.bool_):
            raise NotNativeError(f"{name} holds {array.dtype}")
        keep.append(array)
        setattr(setup, name, array.ctypes.data)


def own_methods(controller: object, owner: type, names: Iterable[str]) -> None:
    """Refuse a class that replaces parts of what the compiled step repeats.

    Args:
        controller: Whose class it is.
        owner: The class whose methods are repeated.
        names: Of these methods.

    Raises:
        NotNativeError: It does; the message says which.
    """
    for name in names:
        if getattr(type(controller), name) is not getattr(owner, name):
            raise NotNativeError(f"{type(controller).__name__} has a {name} of its own")


def compiled(dynamics: Dynamics) -> CompiledDynamics:
    """Return dynamics whose kernels a C text can call.

    Raises:
        NotNativeError: They are of another backend.
    """
    if type(dynamics) is not CompiledDynamics:
        raise NotNativeError("its dynamics are not compiled")
    return dynamics


def callable_kernel(kernel: BoundKernel) -> BoundKernel:
    """Return a kernel that a C text can call.

    Raises:
        NotNativeError: It is no native code.
    """
    if not kernel.address:
        raise NotNativeError("the model is not native code, for want of a C compiler")
    return kernel


def program(name: str, sources: Sequence[Path], *, keep_lock: bool = True) -> ctypes.CDLL:
    """Return compiled texts.

    Args:
        name: Shown in messages.
        sources: Parts of the text, one behind the other.
        keep_lock: Whether its functions keep the GIL, as giving it back costs more than a step
            of some microseconds.

    Raises:
        NotNativeError: There is no C compiler.
    """
    try:
        return _program(name, tuple(sources), keep_lock)
    except CompilationError as error:
        raise NotNativeError(str(error)) from None


@cache
def _program(name: str, sources: tuple[Path, ...], keep_lock: bool) -> ctypes.CDLL:
    loaded = load_library(name, "".join(file.read_text(encoding="utf-8") for file in sources))
    return ctypes.PyDLL(loaded._name, handle=loaded._handle) if keep_lock else loaded
