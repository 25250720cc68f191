"""One muscle board: serial link, session, commands, and the layout that describes it."""
