"""The commands of Shoal, one file each."""
