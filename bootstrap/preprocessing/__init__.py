"""Starts and follows preprocessing on a deployment's EMR cluster; previews and warnings for all preprocessing."""
