"""Where a run happens: a kind of place is a file."""
