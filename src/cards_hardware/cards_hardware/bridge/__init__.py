"""The real robot as a whole, and the node that puts it behind the topics of every host."""
