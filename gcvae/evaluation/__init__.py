"""Measures of synthetic tables: fidelity, utility and privacy of rows.

Every measure takes frames whose cells have their columns' dtypes, as returned by
`gcvae.cells.values.parse_table`, and their schema. Identifiers, constants and columns with `drop`
in the schema are not measured. The package does not import torch.
"""
