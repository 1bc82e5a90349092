"""Commands on files, which need the library only."""
