"""What each mechanism of the model buys: every table with it, and without it."""
