"""All boards of a robot as one, and the node that connects them to the topics of every host."""
