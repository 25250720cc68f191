"""Running Gazebo: is it there and complete, which world, which environment, and its process."""
