"""What a test rig that is killed leaves is gone when the next one starts."""

import signal
import subprocess
import sys
from pathlib import Path

from cards_hardware.hil.emulator import Emulator
from cards_hardware.hil.rig import Rig

KILLED = """
import sys
from pathlib import Path
from cards_hardware.hil.emulator import Emulator
from cards_hardware.hil.rig import Rig
rig, board = Rig("antagonist_joint", Path(sys.argv[1])), Emulator("host")
print(rig._sockets, board.port.parent, flush=True)
sys.stdin.readline()
"""


def test_folders_of_a_killed_rig_are_removed(tmp_path):
    process = subprocess.Popen(
        [sys.executable, "-c", KILLED, str(tmp_path)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    left = [Path(name) for name in process.stdout.readline().split()]
    board = Emulator("host")
    rig = Rig("antagonist_joint", tmp_path)
    try:
        assert len(left) == 2
        assert all(folder.is_dir() for folder in left)  # its process lives
        process.send_signal(signal.SIGKILL)
        process.communicate(timeout=30.0)
        assert all(folder.is_dir() for folder in left)
        other_board, other_rig = Emulator("host"), Rig("antagonist_joint", tmp_path)
        assert not any(folder.exists() for folder in left)
        assert rig._sockets.is_dir()
        other_board.__exit__(None, None, None)
        other_rig.__exit__(None, None, None)
        assert not other_rig._sockets.exists()
    finally:
        board.__exit__(None, None, None)
        rig.__exit__(None, None, None)
    assert not rig._sockets.exists()
    assert not board.port.parent.exists()
