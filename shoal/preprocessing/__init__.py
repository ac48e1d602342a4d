"""Preprocessing on a deployment's EMR cluster, and previews and warnings for preprocessing on any machine."""
