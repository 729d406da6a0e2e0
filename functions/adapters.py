"""The adapters: what implements the ports, as the settings name them.

What lives here: the choice of a store and what goes with it. What must never live here: services
(`functions.bootstrap`). Only these two modules know both core and infra. Imports are made when they are needed.
"""

# ruff: noqa: PLC0415 - imports on first use are what this file is for

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from core.ports import Cipher, Clock, Embedder, Entropy, Objects, Queue, Secrets, Table
from functions.settings import Settings

if TYPE_CHECKING:
    from core.models.chat import Models
    from core.models.choice import Providers


class Adapters(msgspec.Struct, frozen=True):
    """The world: what implements the ports.

    cipher: seals the keys that spaces bring; None where they cannot. secrets: reads the operator's keys. providers:
    builds models; models: answers which serves a space, and embedder: embeds, in place of what the settings say.
    """

    table: Table
    objects: Objects
    queue: Queue
    clock: Clock
    entropy: Entropy
    cipher: Cipher | None = None
    secrets: Secrets | None = None
    providers: Providers | None = None
    models: Models | None = None
    embedder: Embedder | None = None


def adapters(settings: Settings) -> Adapters:
    """The adapters that the settings name."""
    from infra.system import SystemClock, SystemEntropy

    clock, entropy = SystemClock(), SystemEntropy()
    if settings.store == "aws":
        from infra.aws.cipher import KmsCipher
        from infra.aws.clients import Clients
        from infra.aws.objects import S3Objects
        from infra.aws.queue import SqsQueue
        from infra.aws.secrets import Secrets as AwsSecrets
        from infra.aws.table import DynamoTable

        clients = Clients()
        return Adapters(
            table=DynamoTable(clients, settings.table),
            objects=S3Objects(clients, settings.bucket),
            queue=SqsQueue(clients, settings.queue_url),
            clock=clock,
            entropy=entropy,
            cipher=KmsCipher(clients, settings.models.kms_key, entropy) if settings.models.kms_key else None,
            secrets=AwsSecrets(clients, clock),
        )
    from infra.local.cipher import AesCipher, file_cipher
    from infra.local.queue import EmbeddedQueue

    queue = EmbeddedQueue(clock)
    if settings.store == "memory":
        from core.storage.memory import MemoryObjects, MemoryTable

        passing = AesCipher([entropy.token(32)], entropy)  # what it seals is gone with the process, as all is
        return Adapters(MemoryTable(), MemoryObjects(clock), queue, clock, entropy, cipher=passing)
    from pathlib import Path

    from infra.local.objects import DirectoryObjects
    from infra.local.table import SqliteTable

    root = Path(settings.data_dir)
    table = SqliteTable(root / "noema.db", clock)
    cipher = file_cipher(root / "key", entropy)
    return Adapters(table, DirectoryObjects(root / "objects"), queue, clock, entropy, cipher=cipher)
