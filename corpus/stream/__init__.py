"""Reads a text stream from files or a bucket, and writes its words to parts for trainers."""
