"""The Tokens tab: what each token resembles, layer by layer, and what it has become."""
