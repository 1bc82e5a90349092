"""Schedules: trainings that the service repeats at certain times, and the log of their runs.

A run is recorded in the transaction that moves its schedule to the next due time, so each due time
has at most one run. A run consists of steps: import, training, sampling, export. The dataset or job
that a step creates is recorded with the run in the transaction that creates it, so it is not
created twice if a process dies.
"""
