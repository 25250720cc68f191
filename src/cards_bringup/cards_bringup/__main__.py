"""``python -m cards_bringup``: the same as ``./cards``, in an environment that is complete."""

import sys

from cards_bringup.cli import main

if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
