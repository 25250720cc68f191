"""Controller nodes: shells around the controllers of `cards_core.control`."""
