"""Commands of `gcvae` that use a service through the Python client."""
