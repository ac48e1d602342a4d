"""What AWS says to a spot node of its end, by the instance metadata service: that it ends in two minutes, or is likely
to end.

See "Spot Instance interruption notices" in the EC2 user guide. A node on demand has neither.
"""

import os
import re
from contextlib import closing
from http.client import HTTPConnection, HTTPException
from urllib.parse import urlsplit

_SERVICE = "http://169.254.169.254"
_SECONDS = 1.0
_TOKEN = re.compile(r"[\w=+/.-]{1,256}", re.ASCII)
_NOW, _SOON = "spot/instance-action", "events/recommendations/rebalance"


def spot_notice() -> str:
    """`now`, `soon`, or nothing. Raises OSError where the service does not answer."""
    service = urlsplit(os.environ.get("AWS_EC2_METADATA_SERVICE_ENDPOINT", _SERVICE).rstrip("/"))
    with closing(HTTPConnection(str(service.hostname), service.port or 80, timeout=_SECONDS)) as connection:

        def ask(method: str, path: str, headers: dict[str, str]) -> tuple[int, str]:
            try:
                connection.request(method, f"{service.path}/latest/{path}", headers=headers)
                answer = connection.getresponse()
                return answer.status, answer.read().decode("ascii", "replace")
            except HTTPException as error:
                raise OSError(f"the instance metadata service: {type(error).__name__}") from error

        status, token = ask("PUT", "api/token", {"X-aws-ec2-metadata-token-ttl-seconds": "60"})
        if status != 200 or not _TOKEN.fullmatch(token):
            raise OSError(f"the instance metadata service answers {status}, and gives no token")
        for path, notice in ((_NOW, "now"), (_SOON, "soon")):
            status, _ = ask("GET", f"meta-data/{path}", {"X-aws-ec2-metadata-token": token})
            if status == 200:
                return notice
            if status != 404:
                raise OSError(f"the instance metadata service answers {status}")
    return ""
