"""Turns an AWS error into a message for the user: what failed, and what to do about it."""

from boto3.exceptions import Boto3Error
from botocore.exceptions import (
    BotoCoreError,
    ClientError,
    CredentialRetrievalError,
    HTTPClientError,
    NoCredentialsError,
    PartialCredentialsError,
    ProfileNotFound,
    SSOError,
    TokenRetrievalError,
)
from botocore.exceptions import (
    ConnectionError as NoConnectionError,
)

from shoal.aws import loopback
from shoal.aws.retry import CREDENTIAL_ERRORS

AwsError = BotoCoreError | ClientError | Boto3Error

_NOT_ALLOWED = ("AccessDenied", "AccessDeniedException", "UnauthorizedOperation", "403")


def sentence(error: AwsError) -> str:
    """Return a message that quotes the error and says what to do about it."""
    if isinstance(error, NoCredentialsError | PartialCredentialsError | CredentialRetrievalError | ProfileNotFound):
        return (
            f"no usable AWS credentials ({_words(error)}); run `aws configure` or set AWS_PROFILE. Without "
            "an AWS account, use the emulator: shoal embedded"
        )
    if "Invalid header value" in str(error):  # do not quote the value, which may be a secret
        return "your AWS credentials contain a line break or another character that they cannot have; set them again"
    if isinstance(error, SSOError | TokenRetrievalError):
        return f"your AWS login has expired ({_words(error)}); run: aws sso login"
    if loopback.is_unreachable(error):
        return f"cannot reach AWS ({_words(error)}); {loopback.START}"
    if isinstance(error, NoConnectionError | HTTPClientError):
        return (
            f"cannot reach AWS ({_words(error)}); check the network, the proxy if there is one, and AWS_CA_BUNDLE if "
            "it is set"
        )
    code = error.response["Error"].get("Code", "") if isinstance(error, ClientError) else ""
    if code in CREDENTIAL_ERRORS:
        return f"AWS rejected your credentials ({_words(error)}); renew them, or change AWS_PROFILE"
    if code in _NOT_ALLOWED:
        return (
            f"your AWS credentials do not allow this request ({_words(error)}); ask your administrator for "
            f"the permission, or use different credentials"
        )
    return f"AWS failed: {_words(error)}"


def _words(error: AwsError) -> str:
    return " ".join(str(error).split()).rstrip(".")
