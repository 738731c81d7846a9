"""Whether the page is for everybody."""
