"""Kinematic trees."""

from cards_core.kinematics.tree import WORLD_NODE, Node, Tree

__all__ = ["WORLD_NODE", "Node", "Tree"]
