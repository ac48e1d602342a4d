"""What runs left: their records, read, compared, and explained cause by cause."""
