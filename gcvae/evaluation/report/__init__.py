"""Report on a synthetic table: whether it is realistic, useful, and safe to share."""
