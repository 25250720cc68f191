"""Robots as environments of Gymnasium; importing this registers them.

    import gymnasium
    import cards_learning.environments


See docs/environments.md. Of the modules only `environment` needs gymnasium.
"""

try:
    import gymnasium
except ImportError as error:
    raise ImportError(
        f"cards_learning.environments needs gymnasium 1.2 or newer: {error} (expected: "
        "pip install 'cards-robotics[environments]', or ./cards setup --test)"
    ) from error

IDS: dict[str, tuple[str, int]] = {
    "cards/Tensegrity-v0": ("Tensegrity", 400),
    "cards/ArmReach-v0": ("ArmReach", 150),
    "cards/FlowerTracking-v0": ("FlowerTracking", 500),
    "cards/PickAndPlace-v0": ("PickAndPlace", 400),
}
"""Id to the key of `environment.TASKS`, and its most steps."""


def register() -> None:
    """Register the environments that are not registered yet."""
    for name, (kind, steps) in IDS.items():
        if name not in gymnasium.registry:
            module = "cards_learning.environments.environment"
            gymnasium.register(
                id=name,
                entry_point=f"{module}:RobotEnv",
                vector_entry_point=f"{module}:RobotVectorEnv",
                max_episode_steps=steps,
                kwargs={"kind": kind},
            )


register()
