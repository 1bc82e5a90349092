"""Reports that compare a model, its rows and its scores with the real table."""
