"""Imputation beside the baselines: cells of a test table are blanked at random, and filled."""
