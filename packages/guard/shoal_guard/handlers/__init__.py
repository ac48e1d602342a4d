"""Lambda functions. Each function is deployed alone, so it may import only its own files and boto3."""
