"""Muscles in Gazebo's GUI."""
