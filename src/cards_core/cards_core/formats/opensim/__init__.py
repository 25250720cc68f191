"""Import of OpenSim models (``.osim``): bodies, joints, wrap objects, muscles, ligaments."""
