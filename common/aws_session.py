"""A session of AWS that takes the environment's credentials as they are.

Where `AWS_CREDENTIAL_EXPIRATION` names their end botocore tries to renew them, which nobody can, and then raises a
RuntimeError that says nothing of AWS. Without it AWS refuses them, in its own words.
"""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from botocore.session import Session


def core_session() -> "Session":
    """A session of botocore, for boto3's; loads botocore only now."""
    import botocore.session
    from botocore.credentials import EnvProvider

    session = botocore.session.get_session()
    given = EnvProvider(mapping={"expiry_time": "NEVER"})
    resolver = session.get_component("credential_provider")
    resolver.providers = [given if each.METHOD == given.METHOD else each for each in resolver.providers]
    return session
