"""The walkthrough: from the pixels of the visitor's photo to a class, eight steps, each with the numbers of this photo and model.

Each step turns a `StepInput` into a `Screen`, which `vit_viz.ui.walkthrough.screen` lays out.
"""
