"""Campaigns of hostile input: calls of the whole REST API, and files and texts of all kinds."""
