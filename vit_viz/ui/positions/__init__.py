"""The Positions tab: what the model knows of where a patch is."""
