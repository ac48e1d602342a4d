"""The few functions that run inside AWS; each file is deployed alone, with nothing but boto3 beside it."""
