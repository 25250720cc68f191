"""Executables of this package."""

from cards_core.executable import executable
from cards_core.exit_codes import ExitCode

compile = executable("cards_model_compiler.command", interrupted=ExitCode.INTERRUPTED)
live_analysis = executable("cards_model_compiler.live_analysis.node")
model_compiler = executable("cards_model_compiler.model_compiler")
