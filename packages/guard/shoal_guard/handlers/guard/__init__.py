"""Lambda function of the guard. It may import only its own files and the packages that AWS Lambda provides."""
