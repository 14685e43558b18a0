"""A client of the Signpost API: dynamic QR codes, printed once, with a target that can be changed at any time."""

from . import models, params
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
