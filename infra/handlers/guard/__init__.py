"""The function that switches a deployment off; it imports only what Lambda has, and its own files."""
