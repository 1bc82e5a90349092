"""Who may use the records: keys, the sessions that they open, and the log of who did what."""
