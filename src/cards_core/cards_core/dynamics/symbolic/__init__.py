"""CasADi expressions of a tree: kinematics, M, C, G, l, L, Jacobians, body-space quantities."""
