"""The embedded simulator: MuJoCo moves the robot, the muscle engine pulls it."""
