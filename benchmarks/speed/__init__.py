"""How fast the library is, beside the machine's limits and beside a peer. See `__main__`."""
