"""Finding a first state of a robot of rods, and following commands safely from there."""
