"""What every CARDS node shares: topic names, message packing, hot loops, diagnostics, logs."""
