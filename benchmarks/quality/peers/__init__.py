"""Adapters of other people's models: one file per package. Each is used with its defaults."""
