"""Commands on files: they need the library alone."""
