"""Arrow, the package that reads and writes Parquet files, imported when one is used."""

from __future__ import annotations

from typing import Any


def pyarrow_module() -> Any:
    """Return the package ``pyarrow`` with its module ``parquet``."""
    # it takes 0.2 s to import, and most results are never read by the process that starts the job
    import pyarrow.parquet

    return pyarrow
