"""A tour of the page itself; it runs in the browser alone."""
