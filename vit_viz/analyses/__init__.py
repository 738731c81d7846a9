"""What the numbers of a trace mean: each analysis is a pure function from a trace or a model to a result."""
