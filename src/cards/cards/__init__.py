"""CARDS from Python: load a robot, compile it, simulate it, control it, look at it.

    import cards

    robot = cards.load("roboy_arm")
    model = cards.compile(robot)
    state = model(q=robot.home)
    sim = cards.Simulator(robot)
    controller = cards.Controller("ctc_operational", robot, reference="flower")
    run = cards.simulate(sim, controller, duration=5.0)
    run.save("run")
    cards.show(run)

Modules are imported when they are first needed. ROS is not.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

from cards_core import __version__

if TYPE_CHECKING:  # for editors and type checkers: at run time see __getattr__
    from cards import tensegrity as tensegrity
    from cards.learning import learn as learn
    from cards.models import Model as Model
    from cards.models import RodModel as RodModel
    from cards.models import compile as compile
    from cards.muscle_fit import fit_muscles as fit_muscles
    from cards.robots import known_models as known_models
    from cards.robots import load as load
    from cards.run_log import RunLog as RunLog
    from cards.run_log import compare as compare
    from cards.run_log import read_run as read_run
    from cards.simulation import Controller as Controller
    from cards.simulation import Simulator as Simulator
    from cards.simulation import World as World
    from cards.simulation import controllers as controllers
    from cards.simulation import simulate as simulate
    from cards.viewer import View as View
    from cards.viewer import show as show
    from cards_sim.batch import Batch as Batch
    from cards_sim.batch import ModelErrors as ModelErrors

_MODULES = {
    "Batch": "cards_sim.batch",
    "Controller": "cards.simulation",
    "Model": "cards.models",
    "ModelErrors": "cards_sim.batch",
    "RodModel": "cards.models",
    "RunLog": "cards.run_log",
    "Simulator": "cards.simulation",
    "View": "cards.viewer",
    "World": "cards.simulation",
    "compare": "cards.run_log",
    "compile": "cards.models",
    "controllers": "cards.simulation",
    "fit_muscles": "cards.muscle_fit",
    "known_models": "cards.robots",
    "learn": "cards.learning",
    "load": "cards.robots",
    "read_run": "cards.run_log",
    "show": "cards.viewer",
    "simulate": "cards.simulation",
    "tensegrity": "",
}
"""Name to its module; to nothing for what is a module itself."""

__all__ = [  # noqa: PLE0604  the names of _MODULES, once
    "__version__",
    *_MODULES,
]


def __getattr__(name: str) -> Any:
    if name not in _MODULES:
        raise AttributeError(f"module 'cards' has no attribute '{name}'")
    module = importlib.import_module(_MODULES[name] or f"cards.{name}")
    value = getattr(module, name) if _MODULES[name] else module
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *_MODULES})
