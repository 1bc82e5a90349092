"""Commands that run servers or manage their records."""
