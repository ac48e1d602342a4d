"""Agent of a node. It reads the requested run from the data bucket, and starts and stops programs until the node does
what is requested."""
