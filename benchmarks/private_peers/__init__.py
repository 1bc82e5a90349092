"""Other people's private models beside ours: counts of dpmm, and gradients with noise."""
