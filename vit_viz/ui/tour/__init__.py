"""A tour of the page itself, in five stops; it runs in the browser alone."""
