"""Schedules: trainings that the service repeats at certain times, and the log of their runs.

A run is recorded in the transaction that moves its schedule to the next due time, so that each due
time has at most one run. What a step of the run makes is recorded with the run in the transaction
that makes it, so that no step is done twice if a process dies.
"""
