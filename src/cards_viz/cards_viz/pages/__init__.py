"""What the pages of robots with muscles and of rod robots share."""
