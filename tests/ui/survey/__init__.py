"""The Survey tab."""
