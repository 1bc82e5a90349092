"""Model files: complete and minimal."""
