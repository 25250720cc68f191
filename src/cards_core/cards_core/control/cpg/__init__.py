"""Central pattern generators: coupled oscillators that give muscles their rhythm."""
