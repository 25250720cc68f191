"""Array aliases used in signatures; the docstring of each function states shape and unit."""

from typing import Literal, TypeAlias

import numpy as np
import numpy.typing as npt

Array: TypeAlias = npt.NDArray[np.float64]
"""Real array of any shape."""

Vector3: TypeAlias = npt.NDArray[np.float64]
"""Array of shape (3,)."""

Matrix3: TypeAlias = npt.NDArray[np.float64]
"""Array of shape (3, 3)."""

Backend: TypeAlias = Literal["compiled", "numeric"]
"""What computes: native code (built on first use, cached), or plain NumPy, the reference."""
