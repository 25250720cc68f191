"""Muscles and actuator states are told apart by their names."""

import pytest

pytest.importorskip("rclpy", reason="rclpy is not installed")
from cards_ros.messages import JointSetError
from cards_ros.muscle_state_names import MuscleStateNames

pytestmark = pytest.mark.ros


def test_muscles_and_states_of_a_message():
    reader = MuscleStateNames(["a", "b", "b/x"])
    places, states = reader.places(("a", "b", "b/x"))
    assert (places.tolist(), states) == ([0, 1, 2], ())
    # another order, states in between; a muscle's own name counts first
    names = ("b/x", "b", "a/activation", "a", "b/x/activation")
    for _ in range(2):
        places, states = reader.places(names)
        assert places.tolist() == [3, 1, 0]
        assert states == (("a/activation", 2), ("b/x/activation", 4))
    for wrong, text in (
        (("a", "b"), "no value for b/x"),
        (("a", "b", "b/x", "c"), "unknown: c"),
        (("a", "b", "b/x", "c/activation"), "unknown: c/activation"),
        (("a", "a", "b", "b/x"), "more than once: a"),
    ):
        with pytest.raises(JointSetError, match=text):
            reader.places(wrong)
        assert reader.places(names)[0].tolist() == [3, 1, 0]
