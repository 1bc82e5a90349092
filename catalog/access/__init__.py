"""Access control: API keys, sessions, and the audit log."""
