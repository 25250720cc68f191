"""Robots of CARDSflow and Roboy: SDF 1.5 to 1.8 with muscles of ``<myoMuscle>``."""
