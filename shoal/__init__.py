"""What Shoal offers to other programs. Names outside this package may change in any version."""
