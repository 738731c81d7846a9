"""Pictures from results: colours, overlays, mosaics, captions and figures. Knows results and geometry, never analyses."""
