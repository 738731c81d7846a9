"""Every question by its words: the palette that finds it, and the panel that asks it."""
