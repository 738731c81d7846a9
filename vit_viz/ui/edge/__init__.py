"""The edge: what stands between strangers and the app; `http_guard` says what becomes of a request, and which file does it."""
