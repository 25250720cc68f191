"""What importers share: findings, names, report, folder, command line."""
