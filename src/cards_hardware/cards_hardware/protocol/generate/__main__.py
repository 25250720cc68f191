"""``python -m cards_hardware.protocol.generate``."""

from cards_hardware.protocol.generate import main

raise SystemExit(main())
