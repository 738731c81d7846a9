"""One visit: what the visitor looks at, the address bar that holds it, and the long computations that run for it."""
