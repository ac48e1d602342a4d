"""Shared helpers: errors, atomic files, locks, validated JSON and option descriptions. Keep them light to import."""
