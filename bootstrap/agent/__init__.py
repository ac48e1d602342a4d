"""Agent of a node: it reconciles the requested run with the node's programs, through documents in the data bucket."""
