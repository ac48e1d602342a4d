"""Text that readers take from files or a bucket, and leave in parts for trainers."""
