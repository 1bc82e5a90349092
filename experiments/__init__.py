"""Reproduces the experiments of Suh & Choi 2016 with the library: data, models, figures, one page.

`python -m experiments` runs them, stores each result as JSON, and writes docs/paper.md from the
results.
"""
