"""The fault suite: real processes and servers, disturbed at seeded moments, and what came of it."""
