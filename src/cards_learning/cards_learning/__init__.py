"""Learning of gaits in the embedded simulator: objectives, search, trials on many processes."""
