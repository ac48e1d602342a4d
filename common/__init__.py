"""Shared helpers: errors, atomic files, locks, JSON validation and option descriptions. Keep their imports fast."""
