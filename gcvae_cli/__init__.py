"""The `gcvae` command: work on files without a server, and the servers themselves."""
