"""CloudFormation: adds resource types that ministack lacks, and creates and deletes stacks as AWS does."""
