"""Reports on models: their rows and their scores, judged beside the real table."""
