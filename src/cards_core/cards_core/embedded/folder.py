"""An exported controller on disk, and what it needs of a microcontroller."""

from __future__ import annotations

import shutil
import tempfile
from pathlib import Path
from typing import Any

from cards_core.codegen.toolchain import run_tool
from cards_core.embedded.export import FILES, LIBRARY, ControllerExport
from cards_core.errors import CardsError
from cards_core.files import writing_together

ARM = "arm-none-eabi-gcc"
SIZE = "arm-none-eabi-size"

FLASH, RAM = 1 << 20, 192 << 10
"""Of the STM32F405, [bytes]; 64 KiB of the RAM are apart and hold data only."""


def check_folder(folder: str | Path, *, force: bool = False) -> None:
    """Refuse a folder that a controller cannot go to, before one is made for it.

    Args:
        folder: That is to have the files.
        force: Replace files of the same names.

    Raises:
        CardsError: A file of a controller exists, or the folder is none.
    """
    target = Path(folder)
    if target.exists() and not target.is_dir():
        raise CardsError(f"{target} is no folder (expected: -o and the name of a new folder)")
    for name in () if force else FILES:
        if (target / name).exists():
            raise CardsError(
                f"{target / name} exists already (expected: another folder, or --force)"
            )


def write_controller(export: ControllerExport, folder: str | Path, *, force: bool = False) -> Path:
    """Write the files of a controller.

    Args:
        export: From `export_controller`.
        folder: Made if need be.
        force: Replace the files of another export.

    Returns:
        The folder.

    Raises:
        CardsError: A file exists, or cannot be written.
    """
    target = Path(folder)
    check_folder(target, force=force)
    try:
        with writing_together(target) as work:
            for name, text in export.files.items():
                (work / name).write_text(text, encoding="utf-8")
        for name in FILES if force else ():  # of another controller
            if name not in export.files:
                (target / name).unlink(missing_ok=True)
    except OSError as error:
        raise CardsError(
            f"{target}: cannot be written: {error.strerror or error} (expected: a folder that "
            "can be written)"
        ) from None
    return target


def microcontroller_report(export: ControllerExport) -> dict[str, Any]:
    """Return what the controller needs of an STM32F405, by compiling it for one.

    Returns:
        JSON-ready: ``flash`` and ``ram`` of controller and model [bytes], without stack and
        program around it, the ``stack`` of the deepest function of these [bytes], and ``fits``;
        or ``not_measured``, the reason.

    Raises:
        CompilationError: The cross compiler refuses the text.
    """
    compiler, size = shutil.which(ARM), shutil.which(SIZE)
    if compiler is None or size is None:
        return {
            "not_measured": f"{ARM} is not installed (e.g. apt install gcc-arm-none-eabi "
            "libnewlib-arm-none-eabi)"
        }
    flags = "-mcpu=cortex-m4 -mthumb -mfpu=fpv4-sp-d16 -mfloat-abi=hard -std=c99 -O2"
    with tempfile.TemporaryDirectory(prefix="cards-") as scratch:
        work = Path(scratch)
        sources = [name for name in LIBRARY if name in export.files]
        for name in ("controller.h", "parameters.h", *sources):
            (work / name).write_text(export.files[name], encoding="utf-8")
        run_tool([compiler, *flags.split(), "-fstack-usage", "-c", *sources], work)
        objects = [source.replace(".c", ".o") for source in sources]
        table = run_tool([size, *objects], work).splitlines()[1:]
        usage = "".join((work / name.replace(".c", ".su")).read_text() for name in sources)
    text, data, bss = (sum(int(line.split()[i]) for line in table) for i in range(3))
    stack = max(int(line.split("\t")[1]) for line in usage.splitlines())
    flash, ram = text + data, data + bss
    fits = flash <= FLASH and ram + stack <= RAM
    return {"flash": flash, "ram": ram, "stack": stack, "fits": fits}
