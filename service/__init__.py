"""The HTTP API: thin route functions that validate requests and write records to the database."""
