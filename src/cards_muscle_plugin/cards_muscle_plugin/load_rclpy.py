"""Load rclpy into Gazebo's process; to be imported before anything that imports rclpy.

rclpy from wheels brings a spdlog of its own, and Gazebo has another one loaded already. Without
more ado the dynamic linker binds rclpy's calls to Gazebo's spdlog, and rclpy.init crashes. With
RTLD_DEEPBIND libraries look for a symbol among their own first.
"""

from __future__ import annotations

import os
import sys

_flags = sys.getdlopenflags()
sys.setdlopenflags(_flags | os.RTLD_DEEPBIND)
try:
    # the extension module is loaded by this attribute, not by `import rclpy`
    from rclpy.impl.implementation_singleton import rclpy_implementation  # noqa: F401
finally:
    sys.setdlopenflags(_flags)
