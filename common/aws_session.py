"""Creates a botocore session that never refreshes credentials of the environment and raises only botocore's errors.

If `AWS_CREDENTIAL_EXPIRATION` is set, botocore tries to refresh the credentials in the environment variables, fails,
and raises a RuntimeError that does not mention AWS. Without a refresh, AWS refuses expired credentials with a clear
error. If a `credential_process` is missing or prints no valid credentials, botocore raises arbitrary Python errors. For
settings that are no numbers or no URLs, it raises a ValueError that names no setting.
"""

import os
from collections.abc import Iterator
from datetime import UTC, datetime
from functools import cache
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

if TYPE_CHECKING:
    from botocore.session import Session


def core_session() -> "Session":
    """Return a botocore session, from which the caller creates a boto3 session. The first call imports botocore.

    Raises InvalidConfigError, which names the setting, for a setting that is not a number or a URL as it must be.
    """
    import botocore.session
    from botocore.credentials import EnvProvider
    from botocore.exceptions import InvalidConfigError

    _explain_credential_process()
    session = botocore.session.get_session()
    if wrong := next(_wrong_settings(session), None):
        raise InvalidConfigError(error_msg=wrong)
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


def _wrong_settings(session: "Session") -> Iterator[str]:
    """Yield a message for each setting for which botocore would raise a ValueError. botocore explains other errors
    itself."""
    from botocore.exceptions import BotoCoreError

    store = session.get_component("config_store")
    urls = {name: value for name, value in os.environ.items() if name.startswith("AWS_ENDPOINT_URL") and value}
    try:
        for name, (in_profile, variable, *_) in session.session_var_map.items():
            try:
                store.get_config_variable(name)
            except ValueError as error:
                if isinstance(error, BotoCoreError):
                    raise
                yield f"{in_profile}, or {variable}, must be a number"
        profile = session.get_scoped_config()
        services = session.full_config.get("services", {}).get(profile.get("services"), {})
        for each in (profile, *(found for found in services.values() if isinstance(found, dict))):
            if "endpoint_url" in each:
                urls[f"endpoint_url of the profile '{session.profile or 'default'}'"] = each["endpoint_url"]
    except BotoCoreError:  # such as a missing profile
        return
    yield from (
        f"{name}: '{url}' is not the address of a web service" for name, url in urls.items() if not _is_http(url)
    )


def _is_http(url: str) -> bool:
    from botocore.utils import is_valid_endpoint_url

    try:
        return is_valid_endpoint_url(url) and urlsplit(url).scheme in ("http", "https") and urlsplit(url).port != 0
    except ValueError:  # such as the port 99999
        return False
