"""Texts of files for a model to label, and its answers beside what the files have."""
