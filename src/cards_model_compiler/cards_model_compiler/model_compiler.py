"""Node ``model_compiler``: compiles a robot at its start and when asked, and says which it has.

The service answers with the report as JSON when the compilation is over; meanwhile the node goes
on. The model is published on the latched topic ``model`` (`cards_core.loop.model_identity`).
"""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping, Sequence
from typing import Any

from rclpy.callback_groups import ReentrantCallbackGroup
from rclpy.context import Context
from rclpy.executors import SingleThreadedExecutor
from rclpy.node import Node
from rclpy.task import Future
from std_srvs.srv import Trigger

from cards_core.errors import CardsError
from cards_core.formats.locate import find_model
from cards_core.loop.model_identity import identity_from
from cards_model_compiler.job import CompileJob, compile_options, error_text, parameters
from cards_ros import topics
from cards_ros.diagnostics import Diagnostics, Level
from cards_ros.loop import StopFlag, run
from cards_ros.model_topic import ModelTopic
from cards_ros.parameters import Parameters

NODE_NAME = "model_compiler"

_WAIT = 0.05  # [s], longest wait of the loop


class ModelCompilerNode(Node):
    """See the module.

    Args:
        context: ROS context.
        stop: Ends `run`.
        **node_options: Passed to `rclpy.node.Node`.

    Attributes:
        report: Of the last compilation that succeeded, None before.
    """

    def __init__(self, context: Context, stop: StopFlag, **node_options: Any) -> None:
        super().__init__(NODE_NAME, context=context, **node_options)
        self._stop = stop
        self.parameters = Parameters(self, self._on_parameters)
        self.parameters.declare(parameters())
        self.parameters.refuse_others()
        find_model(self.parameters["model"])  # says what is wrong at once
        self.report: dict[str, Any] | None = None
        self._job: CompileJob | None = None
        self._waiting: list[Future] = []
        self.models = ModelTopic(self, "compiler", None)
        # reentrant, because a call is refused while another one waits for its answer
        self.create_service(
            Trigger,
            topics.COMPILE_SERVICE,
            self._on_compile,
            callback_group=ReentrantCallbackGroup(),
        )
        self._executor = SingleThreadedExecutor(context=context)
        self._executor.add_node(self)
        self._diagnostics = Diagnostics(self, self.parameters["model"], ("compiler", "model"))

    def run(self) -> int:
        """Serve until the stop flag is set; return the exit code."""
        self._start()
        while not self._stop and self.context.ok():
            self._executor.spin_once(timeout_sec=_WAIT)
            if self._job is not None and self._job.done:
                self._finish(self._job)
            self.models.update()
            self.models.report(self._diagnostics["model"])
            self._diagnostics.update()
        return 0

    def _start(self) -> CompileJob:
        model = str(self.parameters["model"])
        self._job = job = CompileJob(model, compile_options(self.parameters))
        self._diagnostics["compiler"].ok(f"compiling {model}")
        self.get_logger().info(f"compiling {model}")
        return job

    def _finish(self, job: CompileJob) -> None:
        self._job = None
        status = self._diagnostics["compiler"]
        try:
            self.report = report = job.result()
        except CardsError as error:
            status.report(Level.ERROR, str(error))
            self.get_logger().error(str(error))
        else:
            self.models.announce(identity_from(report))
            seconds = f"{report['seconds']:.2f} s"
            how = f"loaded in {seconds}" if report["cached"] else f"compiled in {seconds}"
            text = f"{report['robot']}: {how}"
            shown = ("hash", "instructions", "bytes", "seconds", "cached", "path")
            values = {name: report[name] for name in shown}
            if report["warnings"]:
                status.report(Level.WARN, "; ".join(report["warnings"]), **values)
            else:
                status.ok(text, **values)
            self.get_logger().info(text)
        waiting, self._waiting = self._waiting, []
        for future in waiting:
            future.set_result(job)

    async def _on_compile(self, _request: Any, response: Any) -> Any:
        if self._job is not None:
            response.message = error_text(
                "BusyError", f"compiling {self._job.model}: try again later"
            )
            return response
        self._start()
        future = Future(executor=self._executor)
        self._waiting.append(future)
        job: CompileJob = await future
        try:
            response.message = json.dumps(job.result())
            response.success = True
        except CardsError as error:
            response.message = error_text(type(error).__name__, str(error))
        return response

    def _on_parameters(self, changes: Mapping[str, Any]) -> None:
        """Refuse a model that does not exist. Raises `UnknownNameError`."""
        if "model" in changes:
            find_model(changes["model"])

    def close(self) -> None:
        """End a compilation that runs, and destroy the node."""
        if self._job is not None:
            self._job.stop()
        self._executor.shutdown()
        self.destroy_node()


def main(args: Sequence[str] | None = None) -> int:
    """Run the node; the entry point of the executable ``model_compiler``."""
    return run(ModelCompilerNode, NODE_NAME, args)


if __name__ == "__main__":
    sys.exit(main())
