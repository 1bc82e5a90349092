"""The `gcvae` command, which works on files, uses a service, or runs the servers of a service."""
