"""Body images: the lengths that muscles have in a pose, from a description or from experience."""
