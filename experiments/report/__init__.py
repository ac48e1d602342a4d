"""Results of runs as one HTML page: `writing.py` composes it from sections of tables and plots."""
