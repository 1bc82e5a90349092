"""The `gcvae` command: on files, without a server, and the servers themselves."""
