"""The views of the page: each has `build`, which lays it out, and `wire`, which makes it answer."""
