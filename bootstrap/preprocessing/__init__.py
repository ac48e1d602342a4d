"""Preprocessing on a deployment's EMR cluster, and previews and warnings for all preprocessing."""
