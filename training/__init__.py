"""How the bundled model was trained: not part of the app, never imported by it."""
