"""How good a synthetic table is: fidelity to the real one, utility in its place, privacy of rows.

Every measure takes typed frames, as `gcvae.cells.values.parse_table` gives them, and their schema;
identifiers, constants and dropped columns are not measured. Loads without torch.
"""
