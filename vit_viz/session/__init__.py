"""The one path from a request to a result: models, pictures, traces and results of one process, and who may have which."""
