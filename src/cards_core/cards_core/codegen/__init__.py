"""From expressions to native code: emit C, compile it, cache it, load it."""
