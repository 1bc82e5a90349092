"""Scores beside the truth, on tables whose distribution is known."""
