"""Writes the results of runs as one HTML page. `writing.py` composes the page from sections with tables and plots."""
