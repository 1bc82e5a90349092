"""Measures of synthetic tables: fidelity, utility and privacy of rows.

Every measure takes typed frames, as `gcvae.cells.values.parse_table` returns them, and their
schema. Identifiers, constants and dropped columns are not measured. The package does not import
torch.
"""
