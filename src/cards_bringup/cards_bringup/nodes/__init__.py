"""Which nodes a robot has, and running them."""
