"""The Patches tab: how the photo becomes the sequence of tokens that the model receives."""
