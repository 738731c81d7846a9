"""The edge: what stands between strangers and the app; `door` says what becomes of a request, and which file does it."""
