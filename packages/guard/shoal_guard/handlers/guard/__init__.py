"""The function that switches a deployment off. It may import only its own files and what Lambda provides."""
