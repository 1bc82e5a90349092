"""Measurements of gcvae beside its peers; each folder is one command."""
