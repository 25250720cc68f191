"""The mathematics of CARDS; imports neither ROS nor Gazebo nor MuJoCo."""

__version__ = "0.2.0"
