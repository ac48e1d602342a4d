"""Raw reviews to a dataset on a deployment's EMR cluster."""
