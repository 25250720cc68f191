"""Pictures of workspaces."""
