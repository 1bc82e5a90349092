"""Models of databases: each table has a model of its rows, given the row of its parent table.

    p(a, n, x) = ∫ p(a, n, u) prod_k p(x_k | a, n, u, k, x_{k-1}) du

a is a parent row, n the number of its children (rows of another table that refer to it), x_k its
k-th child, and u the random effect: a latent vector that the children of one parent share. The
terms k and x_{k-1} occur only if the children are ordered.
"""
