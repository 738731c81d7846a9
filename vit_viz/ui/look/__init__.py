"""The Look tab: what one token looks at, live under the cursor."""
