"""A botocore session that never refreshes credentials from the environment and raises only botocore's errors.

If `AWS_CREDENTIAL_EXPIRATION` is set, botocore tries to refresh credentials of the environment, fails, and raises a
RuntimeError that does not mention AWS. Without it, AWS refuses expired credentials with a clear error. If a
`credential_process` is missing or prints no valid credentials, botocore raises arbitrary Python errors.
"""

from datetime import UTC, datetime
from functools import cache
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from botocore.session import Session


def core_session() -> "Session":
    """Return a botocore session to build a boto3 session from. Imports botocore on the first call."""
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
    """Turn every error of a `credential_process` into a CredentialRetrievalError.

    Patches the provider class, because botocore creates further providers for a `source_profile` on demand.
    """
    from botocore.credentials import ProcessProvider
    from botocore.exceptions import CredentialRetrievalError
    from botocore.utils import parse_timestamp

    original: Any = ProcessProvider._retrieve_credentials_using  # type: ignore[attr-defined]

    def retrieve(self: ProcessProvider, command: str) -> Any:
        try:
            found = original(self, command)
            if (end := found["expiry_time"]) is not None and parse_timestamp(end) <= datetime.now(UTC):
                raise ValueError(f"its credentials expired at {end}")
        except (OSError, ValueError, LookupError, TypeError, AttributeError) as error:
            reason = f"the credential_process '{command.partition(' ')[0]}' failed: {error}"
            raise CredentialRetrievalError(provider=self.METHOD, error_msg=reason) from error
        return found

    ProcessProvider._retrieve_credentials_using = retrieve  # type: ignore[attr-defined]
