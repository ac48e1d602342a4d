"""KMS: the operations that set the policy of a key."""

from shoal_local_aws.seams.lookup import MinistackModule, Operation, PatchPoint

_kms = MinistackModule("services.kms")

create_key: PatchPoint[Operation] = PatchPoint("_create_key", _kms)
put_key_policy: PatchPoint[Operation] = PatchPoint("_put_key_policy", _kms)
