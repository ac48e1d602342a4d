"""Preprocessing on a deployment's EMR cluster. Previews and warnings are for preprocessing on any machine."""
