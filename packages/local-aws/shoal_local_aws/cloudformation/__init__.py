"""CloudFormation: resource types that ministack lacks, and AWS's rules for the creation and deletion of stacks."""
