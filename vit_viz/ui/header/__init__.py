"""The header of the page: model, photo, size, the most probable classes and the facts."""
