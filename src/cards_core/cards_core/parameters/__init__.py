"""Named values that people set: declaration, check, files.

`declaration` says what a parameter is and reads a set of them; `parameter_file` reads the YAML
files of ROS nodes without ROS, with the line of every value.
"""
