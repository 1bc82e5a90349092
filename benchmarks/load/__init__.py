"""Many clients at once: what they wait for while a job trains. `python -m benchmarks.load`."""
