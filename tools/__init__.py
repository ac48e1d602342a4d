"""Programs for maintainers of Shoal. They are not installed with it."""
