"""Who calls the emulated AWS, and what they may do."""
