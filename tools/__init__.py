"""Programs for maintainers of Shoal. They are not part of the installed package."""
