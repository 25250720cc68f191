"""What somebody wants to see of a real robot at a glance, from boards or from topics."""
