"""Commands that are servers, or look after their records."""
