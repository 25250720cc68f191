"""Firmware that breaks its contract on purpose: what the random sequences have to notice.

``python wrong_firmware.py [COUNT]`` builds each and tells in which sequence it was caught.
"""

from __future__ import annotations

import shutil
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path

FIRMWARE = Path(__file__).resolve().parents[4] / "firmware"
FLAGS = ("-std=c11", "-O2", "-Icore", "-Itest/unit", "-Itest/sequences")
SOURCES = ("test/sequences/*.c", "test/unit/fake_board.c", "core/*.c")


@dataclass(frozen=True)
class Fault:
    """Text of a file of the core, and what stands there instead."""

    file: str
    old: str
    new: str


WRONG = {
    "the hold never ends": Fault(
        "device.c",
        "(device->started_us - device->attended_us) < device->settings.unattended_hold_us",
        "true",
    ),
    "heartbeats of any host count as those of who armed": Fault(
        "requests.c",
        "if (device->session.nonce == device->session.armer) {\n        device->attended_us",
        "if (true) {\n        device->attended_us",
    ),
    "drives stay on after DRIVE_TIMEOUT": Fault(
        "device.c", "if (device->drives_lost) {", "if (false) {"
    ),
    "an emergency stop begins hold and ramp anew": Fault(
        "device.c",
        "void device_estop(struct device *device, uint16_t reason)\n{\n",
        "void device_estop(struct device *device, uint16_t reason)\n{\n"
        "    device->attended_us = device->started_us;\n    device->releasing = false;\n",
    ),
    "RELAX by request outlasts its session": Fault(
        "requests.c", "        device->relax_requested = false;\n", ""
    ),
    "RELAX lasts by request of another host": Fault(
        "requests.c", "(device->session.nonce == device->session.armer));", "true);"
    ),
    "arming does not look at values that are not saved": Fault(
        "protection.c", "(device->unsaved ? MLP_FAULT_UNSAVED : 0U);", "0U;"
    ),
    "a token works twice": Fault(
        "session.c",
        "void session_token_use(struct session *session)\n{\n    session->token_good = false;",
        "void session_token_use(struct session *session)\n{\n    session->token_good = true;",
    ),
    "the drives stay on behind the ramp": Fault(
        "device.c",
        "if (gone >= ramp) {\n        power_off(device);",
        "if (gone >= ramp) {\n        device->held = 0.0F;",
    ),
    "motor power stays on behind the ramp": Fault(
        "device.c",
        "state_machine_power_off(&device->machine);\n    board_motor_power(false);",
        "state_machine_power_off(&device->machine);",
    ),
    "the safe tensions do not fall during the ramp": Fault(
        "device.c", "limits.tension_safe *= clampf(braked, device->held, 1.0F);", "(void)braked;"
    ),
    "a new session keeps what was not saved": Fault(
        "requests.c", "        drop_trials(device);\n", ""
    ),
    "another host changes nothing": Fault(
        "requests.c", "(void)device_input(device, INPUT_SESSION_CHANGED);", ""
    ),
    "armed without heartbeats": Fault(
        "device.c", "(silence >= device->settings.heartbeat_us)", "false"
    ),
    "commands are never gone": Fault(
        "device.c",
        "late_command(device, INPUT_COMMAND_DISARM,",
        "late_command(device, INPUT_RELAX,",
    ),
    "a save that failed counts as one": Fault(
        "parameters.c",
        "return false; /* the old record",
        "(void)memcpy(parameters->saved, parameters->values, sizeof parameters->saved);\n"
        "        return false; /* the old record",
    ),
    "tensions are not looked at": Fault(
        "commands.c",
        "return (tension >= 0) && (tension <= limits->tension_max[i]);",
        "return (tension >= 0) || (limits == NULL) || (i > 16U);",
    ),
    "currents have no limit": Fault(
        "muscle.c", "muscle->current = clampf(current, -top, top);", "muscle->current = current;"
    ),
    "an emergency stop takes its time": Fault(
        "muscle.c",
        "case PROFILE_STOP:\n        return limited(muscle, limits, sense, tension, derating);",
        "case PROFILE_STOP:\n        break;",
    ),
    "parameters change under power": Fault(
        "requests.c",
        "if (device->machine.drives_on && !parameters_tunable(message->id) &&",
        "if (false &&",
    ),
    "drives that repeat themselves are new after a gap": Fault(
        "drive.c",
        "if (drive->known && (state.tick",
        "if (drive->ever && (state.tick",
    ),
    "arming leads out of an emergency stop": Fault(
        "state_machine.c",
        "[STATE_ESTOP] = {NONE, NONE, NONE, NONE,",
        "[STATE_ESTOP] = {NONE, NONE, NONE, STATE_ARMED,",
    ),
}
"""By what is wrong."""


def build(folder: Path, compiler: str, fault: Fault | None = None) -> Path:
    """Compile the sequences, against a core with a fault in it; return the program."""
    tree = folder / "firmware"
    shutil.copytree(FIRMWARE / "core", tree / "core")
    shutil.copytree(FIRMWARE / "test", tree / "test")
    if fault is not None:
        file = tree / "core" / fault.file
        text = file.read_text(encoding="utf-8")
        assert text.count(fault.old) == 1, f"{fault.file} has changed: {fault.old}"
        file.write_text(text.replace(fault.old, fault.new), encoding="utf-8")
    files = [str(file) for pattern in SOURCES for file in sorted(tree.glob(pattern))]
    program = folder / "sequences"
    subprocess.run([compiler, *FLAGS, *files, "-lm", "-o", str(program)], cwd=tree, check=True)
    return program


def run(program: Path, count: int, seed: int = 1) -> subprocess.CompletedProcess[str]:
    """Run sequences until one shows a violation."""
    command = [str(program), "--count", str(count), "--seed", str(seed)]
    return subprocess.run(command, capture_output=True, text=True, check=False)


def main() -> int:
    """Tell of each fault in which sequence it was caught."""
    count = int(sys.argv[1]) if len(sys.argv) > 1 else 1000
    compiler = shutil.which("cc") or "gcc"
    missed = 0
    for name, fault in WRONG.items():
        with tempfile.TemporaryDirectory() as folder:
            done = run(build(Path(folder), compiler, fault), count)
        missed += done.returncode != 1
        said = done.stdout.splitlines()[0] if done.stdout else done.stderr
        print(f"{name}: {said if done.returncode == 1 else f'MISSED in {count}'}", flush=True)
    print(f"{len(WRONG) - missed} of {len(WRONG)} caught")
    return 1 if missed else 0


if __name__ == "__main__":
    sys.exit(main())
