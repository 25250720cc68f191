"""Pages in the browser: what those of robots with muscles and of rod robots share."""
