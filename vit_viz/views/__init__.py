"""Views of one image in one model: their state, which is also the link, and the models and pictures that they may name."""
