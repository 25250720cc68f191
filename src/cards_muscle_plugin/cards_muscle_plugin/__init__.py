"""The muscles as a system of Gazebo; `cards_muscle_plugin.system` is what Gazebo loads."""
