"""What a run leaves behind: logs, summary, recording, and the folder with all of it."""
