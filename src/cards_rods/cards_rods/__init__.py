"""Robots of elastic rods as a ROS host: commands come in, equilibria go out."""
