"""The Explain tab: why the model said this, by all methods, and how far each map can be trusted."""
