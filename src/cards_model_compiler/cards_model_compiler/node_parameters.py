"""Parameters of the node ``model_compiler``."""

from __future__ import annotations

from cards_core.parameters.declaration import Parameter, ParameterStore


def parameters() -> list[Parameter]:
    """Return all parameters of the node."""
    return [
        Parameter(
            "model",
            "roboy_arm",
            "Robot: name of a folder in models/, or path of an SDF; for the next ~/compile.",
            live=True,
        ),
        Parameter(
            "emit", "M,C,G,l,L", "Quantities to compile, as of ./cards compile --help.", live=True
        ),
        Parameter(
            "precision",
            "double",
            "Precision of the numbers.",
            choices=("double", "single"),
            live=True,
        ),
        Parameter("batch", False, "Also compile code for many states at once.", live=True),
        Parameter("force", False, "Compile although the cache has it.", live=True),
    ]


def compile_options(values: ParameterStore) -> list[str]:
    """Return the arguments of the command ``compile`` for the values of the parameters."""
    options = [f"--emit={values['emit']}", f"--precision={values['precision']}", "--nodes"]
    return options + [f"--{name}" for name in ("batch", "force") if values[name]]
