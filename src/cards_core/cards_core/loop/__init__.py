"""Processing between a state and its command: host, control loop, pacing, log and verdict.

The same objects run in one process, behind topics, in Gazebo and on the real robot.
"""
