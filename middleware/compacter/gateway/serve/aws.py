"""Requests that are signed for AWS.

A signature covers the body and the host, so a signed request cannot go another way or be changed.
With an API key or credentials of the operator it is authorized anew:
https://docs.aws.amazon.com/IAM/latest/UserGuide/reference_sigv.html.
"""

from __future__ import annotations

from typing import Any

import httpx

from compacter.errors import ConfigurationError
from compacter.gateway.serve.upstream import Headers

_SIGNED = b"AWS4-"
_OF_SIGNATURE = frozenset(
    {b"authorization", b"x-amz-date", b"x-amz-security-token", b"x-amz-content-sha256"}
)
_SERVICE = "bedrock"


def is_signed(headers: Headers) -> bool:
    """Return whether a request has an AWS signature, and not an API key."""
    return any(name == b"authorization" and value.startswith(_SIGNED) for name, value in headers)


class Signer:
    """Signs requests with the operator's credentials, as boto3 finds them.

    Args:
        region: Region of the upstream, such as ``us-east-1``.

    Raises:
        ConfigurationError: There are no credentials, or boto3 is not installed.
    """

    def __init__(self, region: str) -> None:
        try:
            from botocore.session import Session
        except ImportError:
            raise ConfigurationError("aws_region needs: pip install boto3") from None
        self._region = region
        session = Session()
        # boto3 uses an API key before any credentials.
        self._key: Any = session.get_auth_token(signing_name=_SERVICE)
        self._credentials: Any = self._key or session.get_credentials()
        if self._credentials is None:
            raise ConfigurationError(
                "aws_region: no credentials were found; set AWS_BEARER_TOKEN_BEDROCK, or "
                "AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, or AWS_PROFILE"
            )

    def signed(
        self, method: str, url: httpx.URL, headers: Headers, content: bytes
    ) -> list[tuple[bytes, bytes]]:
        """Return the headers with a new signature in place of the old one."""
        from botocore.auth import SigV4Auth
        from botocore.awsrequest import AWSRequest

        kept = [(name, value) for name, value in headers if name not in _OF_SIGNATURE]
        if self._key is not None:
            return [*kept, (b"authorization", f"Bearer {self._key.token}".encode())]
        covered = {name.decode(): value.decode("latin-1") for name, value in kept}
        request = AWSRequest(method=method, url=str(url), data=content, headers=covered)
        signer = SigV4Auth(self._credentials.get_frozen_credentials(), _SERVICE, self._region)
        signer.add_auth(request)
        return [
            (name.lower().encode(), str(value).encode("latin-1"))
            for name, value in request.headers.items()
        ]
