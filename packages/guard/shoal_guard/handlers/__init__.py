"""The functions that run inside AWS. Each is deployed without the others; besides its own files it has only boto3."""
