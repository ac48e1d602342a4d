"""Lambda functions. Each is deployed separately: it may import only its own files and boto3."""
