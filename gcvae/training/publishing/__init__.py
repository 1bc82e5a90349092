"""Model files: whole ones, and those that are handed on."""
