"""Robots of elastic rods inside Gazebo."""
