"""The numbers of the Walkthrough: one image on its way through a model, step by step."""
