"""A session of AWS that takes the environment's credentials as they are, and whose errors are botocore's.

Where `AWS_CREDENTIAL_EXPIRATION` names their end botocore tries to renew them, which nobody can, and then raises a
RuntimeError that says nothing of AWS. Without it AWS refuses them, in its own words. A `credential_process` that is not
there or prints what is no credentials makes botocore raise whatever Python does.
"""

from datetime import UTC, datetime
from functools import cache
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from botocore.session import Session


def core_session() -> "Session":
    """A session of botocore, for boto3's; loads botocore only now."""
    import botocore.session
    from botocore.credentials import EnvProvider

    _explain_credential_process()
    session = botocore.session.get_session()
    given = EnvProvider(mapping={"expiry_time": "NEVER"})
    resolver = session.get_component("credential_provider")
    resolver.providers = [given if each.METHOD == given.METHOD else each for each in resolver.providers]
    return session


@cache
def _explain_credential_process() -> None:
    """Make every error of a `credential_process` a CredentialRetrievalError, also of a `source_profile`, whose provider
    botocore makes where it needs it."""
    from botocore.credentials import ProcessProvider
    from botocore.exceptions import CredentialRetrievalError
    from botocore.utils import parse_timestamp

    original: Any = ProcessProvider._retrieve_credentials_using  # type: ignore[attr-defined]

    def retrieve(self: ProcessProvider, command: str) -> Any:
        try:
            found = original(self, command)
            if (end := found["expiry_time"]) is not None and parse_timestamp(end) <= datetime.now(UTC):
                raise ValueError(f"what it prints expired at {end}")
        except (OSError, ValueError, LookupError, TypeError, AttributeError) as error:
            reason = f"the credential_process '{command.partition(' ')[0]}' cannot be used: {error}"
            raise CredentialRetrievalError(provider=self.METHOD, error_msg=reason) from error
        return found

    ProcessProvider._retrieve_credentials_using = retrieve  # type: ignore[attr-defined]
