"""The Heads tab: what each head does, in numbers, by name, and for the answer."""
