"""The public Python interface. The package `shoal` exports its names."""
