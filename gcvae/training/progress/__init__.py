"""Progress of a fit: estimated seconds of its steps, the remaining fraction, the progress bar."""
