"""What a run leaves behind: logs, summary, recording, and the folder that holds them."""
