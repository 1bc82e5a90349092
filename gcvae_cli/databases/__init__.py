"""Databases and folders of files as sources and targets of `gcvae clone`."""
