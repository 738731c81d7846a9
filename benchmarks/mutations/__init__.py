"""Small faults made in the package on purpose, one at a time, and whether the tests notice: `python -m benchmarks.mutations`."""
