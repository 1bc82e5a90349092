"""Commands of `gcvae` that run the servers of a service or manage its data."""
