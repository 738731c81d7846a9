"""Results as pictures and files."""
