"""The command `gcvae clone`, which generates synthetic databases and folders of files."""
