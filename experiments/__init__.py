"""What was tried, one file each; every file prints the figures that it claims."""
