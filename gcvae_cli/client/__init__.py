"""Commands that use a service through the Python client."""
