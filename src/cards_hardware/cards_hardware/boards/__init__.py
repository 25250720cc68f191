"""One board of muscles: its line, its session, and what is asked and told."""
