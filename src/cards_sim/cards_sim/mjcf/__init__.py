"""MuJoCo's format: an importer. MuJoCo itself reads the file; see ``docs/import_mujoco.md``."""
