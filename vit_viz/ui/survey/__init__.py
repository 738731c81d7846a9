"""The Survey tab: many photos at once, where whoever runs the app opened a survey of them."""
