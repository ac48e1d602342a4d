"""Creates a botocore session that never refreshes credentials of the environment and raises only botocore's errors.

If `AWS_CREDENTIAL_EXPIRATION` is set, botocore tries to refresh the credentials in the environment variables, fails,
and raises a RuntimeError that does not mention AWS. Without a refresh, AWS refuses expired credentials with a clear
error. If a `credential_process` is missing or prints no valid credentials, botocore raises arbitrary Python errors.
"""

from datetime import UTC, datetime
from functools import cache
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from botocore.session import Session


def core_session() -> "Session":
    """Return a botocore session, from which the caller creates a boto3 session. The first call imports botocore."""
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
    """Convert every error of a `credential_process` to a CredentialRetrievalError.

    Patches botocore's provider class instead of one provider, because botocore creates more providers later, for each
    `source_profile`.
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
