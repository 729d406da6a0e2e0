"""`Objects` in S3: immutable bytes under keys that are written once.

What lives here: requests and answers of S3. What must never live here: which objects exist for what reason.
Every put carries `If-None-Match: *`, which the bucket's policy requires too; so nothing is ever overwritten.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Any, Final

from botocore.exceptions import ClientError

from core.model.instants import Instant, from_datetime
from core.ports import KeyExists, Range, Unavailable
from infra.aws.faults import code_of, translated

if TYPE_CHECKING:
    from infra.aws.clients import Clients

_ATTEMPTS: Final = 4  # of a put that S3 cannot decide because another one is in flight (409)
_AT_ONCE: Final = 10  # reads of one lookup: as many as a client keeps connections for
_DELETE_BATCH: Final = 1000  # S3's bound


class S3Objects:
    """Objects in the S3 bucket `bucket`."""

    def __init__(self, clients: Clients, bucket: str) -> None:
        self._clients = clients  # its S3 client is built at the first call that needs it
        self._bucket = bucket

    def put(self, key: str, body: bytes) -> None:
        """Write a new object; raises `KeyExists`."""
        for _ in range(_ATTEMPTS):
            with translated("PutObject"):
                try:
                    self._clients.s3.put_object(Bucket=self._bucket, Key=key, Body=body, IfNoneMatch="*")
                except ClientError as error:
                    code = code_of(error)
                    if code == "PreconditionFailed":
                        if _repeated(error) and self.get(key) == body:
                            return  # botocore sent it twice and the first answer was lost: it is ours
                        raise KeyExists(key) from error
                    if code != "ConditionalRequestConflict":
                        raise
                else:
                    return
        raise Unavailable("PutObject: ConditionalRequestConflict")

    def get(self, key: str, first: int = 0, length: int | None = None) -> bytes | None:
        """The object's bytes from `first`, or None if there is no such object."""
        if first < 0 or (length is not None and length < 0):
            raise ValueError("a range begins at 0 or later and has a length of 0 or more")
        request: dict[str, Any] = {"Bucket": self._bucket, "Key": key}
        if length == 0:  # HTTP cannot ask for no bytes; one tells whether the object exists
            request["Range"] = f"bytes={first}-{first}"
        elif first or length is not None:
            request["Range"] = f"bytes={first}-{'' if length is None else first + length - 1}"
        with translated("GetObject"):
            try:
                body: bytes = self._clients.s3.get_object(**request)["Body"].read()
            except ClientError as error:
                if code_of(error) == "NoSuchKey":
                    return None
                if code_of(error) == "InvalidRange":  # the object exists and ends before `first`
                    return b""
                raise
        return b"" if length == 0 else body

    def get_many(self, ranges: Sequence[Range]) -> Sequence[bytes | None]:
        """Several pieces at the same time: a lookup over many segments takes the time of a few requests."""
        if len(ranges) < 2:
            return [self.get(*one) for one in ranges]
        with ThreadPoolExecutor(min(_AT_ONCE, len(ranges))) as pool:
            return list(pool.map(lambda one: self.get(*one), ranges))

    def list(self, prefix: str) -> Iterator[tuple[str, Instant, int]]:
        """Every key that begins with `prefix`, in order, with its time and size, page by page."""
        pages = iter(
            self._clients.s3.get_paginator("list_objects_v2").paginate(Bucket=self._bucket, Prefix=prefix)
        )
        while True:
            with translated("ListObjectsV2"):
                page = next(pages, None)
            if page is None:
                return
            for item in page.get("Contents", []):
                yield item["Key"], from_datetime(item["LastModified"]), item["Size"]

    def delete(self, keys: Sequence[str]) -> None:
        """Remove objects, a thousand in one request."""
        for start in range(0, len(keys), _DELETE_BATCH):
            batch = keys[start : start + _DELETE_BATCH]
            with translated("DeleteObjects"):
                answer = self._clients.s3.delete_objects(
                    Bucket=self._bucket, Delete={"Objects": [{"Key": key} for key in batch], "Quiet": True}
                )
            if errors := answer.get("Errors"):
                raise Unavailable(f"DeleteObjects: {len(errors)} of {len(batch)} remain")


def _repeated(error: ClientError) -> bool:
    return error.response.get("ResponseMetadata", {}).get("RetryAttempts", 0) > 0
