"""The experiments of Suh & Choi 2016, made with the library: data, models, figures, one page.

`python -m experiments` runs them, keeps each result as JSON, and writes docs/paper.md from those.
"""
