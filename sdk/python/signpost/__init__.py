"""A client of the Signpost API: dynamic QR codes, printed once, with a target that can be changed at any time."""

from pkgutil import extend_path

# The stubs of the gRPC services (docs/internal-callers.md) are in a package of the same name: both can be imported.
__path__ = extend_path(__path__, __name__)

from . import models, params  # noqa: E402
from ._batches import CreatedBatch
from ._client import Signpost
from ._codes import CreatedCode
from ._errors import (
    ApiError,
    AuthenticationError,
    BadRequestError,
    ConflictError,
    ConnectionError,
    NotFoundError,
    PermissionDeniedError,
    RateLimitError,
    ServerError,
    SignpostError,
    TooLargeError,
)
from ._listing import Listing, Page

__all__ = [
    "ApiError",
    "AuthenticationError",
    "BadRequestError",
    "ConflictError",
    "ConnectionError",
    "CreatedBatch",
    "CreatedCode",
    "Listing",
    "NotFoundError",
    "Page",
    "PermissionDeniedError",
    "RateLimitError",
    "ServerError",
    "Signpost",
    "SignpostError",
    "TooLargeError",
    "models",
    "params",
]
