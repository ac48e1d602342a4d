"""The end of a deployment: find everything that belongs to it, delete it, and prove that it is gone."""
