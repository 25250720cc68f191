"""The muscle editor: a page on which muscles are drawn, wrapped and tuned."""
