"""CloudFormation: resource types that ministack lacks, and AWS's rules for creating and deleting stacks."""
