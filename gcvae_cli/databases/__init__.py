"""`gcvae clone`: databases and folders of files."""
