"""The end of a deployment: everything that is its own is found, deleted, and proven gone."""
