"""Linked tables: one model for each table, given its parent's row.

    p(a, n, x) = ∫ p(a, n, u) prod_k p(x_k | a, n, u, k, x_{k-1}) du

a parent row, n its number of children, u what its children have in common, x_k its k-th child.
"""
