"""Text that readers take from files, a bucket or a socket, and leave in parts for trainers."""
