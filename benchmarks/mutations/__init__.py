"""Faults put into single places of the package on purpose, and whether the tests notice: `python -m benchmarks.mutations`."""
