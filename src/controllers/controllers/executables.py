"""Executables of this package."""

from cards_core.executable import executable

ctc_joint = executable("controllers.ctc_joint")
impedance = executable("controllers.impedance")
cpg = executable("controllers.cpg")
mrc = executable("controllers.mrc")
joint_estimator = executable("controllers.joint_estimator")
trajectory_action = executable("controllers.trajectory_action")
ctc_operational = executable("controllers.ctc_operational")
