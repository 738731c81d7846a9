"""The app: a page in the browser, from Gradio components and the live explorer."""
