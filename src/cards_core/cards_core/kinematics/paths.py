"""Muscle paths as tables with the nodes of a tree as frames."""

from __future__ import annotations

from cards_core.kinematics.tree import WORLD_NODE, Tree
from cards_core.muscles.layout import PathLayout, layout_of
from cards_core.spatial import Pose


def tree_layout(tree: Tree) -> PathLayout:
    """Flatten the muscle paths of a tree's robot; frames are its nodes.

    Raises:
        DescriptionError: See `cards_core.muscles.layout.layout_of`.
    """
    count = len(tree.nodes)

    def place(link: str) -> tuple[int, Pose]:
        node, pose = tree.link_node[link]
        return (count if node == WORLD_NODE else node), pose

    return layout_of(tree.robot, place, count)
