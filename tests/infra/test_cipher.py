"""Sealing: with a key file, with keys in memory, and with KMS."""

from __future__ import annotations

import os
import stat
import threading
from pathlib import Path

import boto3
import pytest
from botocore.stub import Stubber

from core.ports import Cipher, StoreFault, Unavailable
from infra.aws.cipher import KmsCipher
from infra.aws.clients import Clients
from infra.local.cipher import AesCipher, file_cipher
from infra.system import SystemEntropy
from tests.doubles import CountingEntropy
from tests.ministack import LocalAws

SECRET = b"sk-a-key-of-the-tests"
FIRST, SECOND = bytes(range(32)), bytes(range(1, 33))


def check(cipher: Cipher) -> bytes:
    """What holds for any cipher; a sealed text."""
    sealed = cipher.seal(SECRET, "home/1")
    assert SECRET not in sealed
    assert cipher.open(sealed, "home/1") == SECRET
    assert cipher.seal(SECRET, "home/1") != sealed
    assert cipher.open(cipher.seal(b"", "home/1"), "home/1") == b""
    with pytest.raises(StoreFault):
        cipher.open(sealed, "home/2")
    for place in range(len(sealed)):
        broken = bytearray(sealed)
        broken[place] ^= 1
        with pytest.raises(StoreFault):
            cipher.open(bytes(broken), "home/1")
    for length in range(len(sealed)):
        with pytest.raises(StoreFault):
            cipher.open(sealed[:length], "home/1")
    return sealed


def test_a_cipher_in_memory() -> None:
    """It opens what it sealed under the same context, and nothing that was changed anywhere."""
    check(AesCipher([FIRST], CountingEntropy()))


def test_keys_are_rotated_by_adding_one_before_the_others() -> None:
    """The first seals, each opens; without its key a text stays shut."""
    old = AesCipher([FIRST], CountingEntropy()).seal(SECRET, "c")
    rotated = AesCipher([SECOND, FIRST], CountingEntropy())

    assert rotated.open(old, "c") == SECRET
    new = rotated.seal(SECRET, "c")
    assert AesCipher([SECOND], CountingEntropy()).open(new, "c") == SECRET
    with pytest.raises(StoreFault, match="not here"):
        AesCipher([SECOND], CountingEntropy()).open(old, "c")
    for keys in ([], [b"short"]):
        with pytest.raises(ValueError):
            AesCipher(keys, CountingEntropy())


def test_a_key_file_is_made_for_its_owner_alone(tmp_path: Path) -> None:
    """And read again by the next process."""
    path = tmp_path / "data" / "key"
    sealed = check(file_cipher(path, SystemEntropy()))

    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert file_cipher(path, SystemEntropy()).open(sealed, "home/1") == SECRET
    assert [each.name for each in path.parent.iterdir()] == ["key"]


def test_a_key_file_is_made_once(tmp_path: Path) -> None:
    """Whoever else makes one at the same time uses the same."""
    path, made = tmp_path / "key", []
    threads = [
        threading.Thread(target=lambda: made.append(file_cipher(path, SystemEntropy()))) for _ in range(8)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(10)

    sealed = made[0].seal(SECRET, "c")
    assert [cipher.open(sealed, "c") for cipher in made] == [SECRET] * 8


@pytest.mark.parametrize("text", ["", "not a key\n", "abcd\n"])
def test_a_key_file_that_holds_none_is_refused(tmp_path: Path, text: str) -> None:
    """A new key in its place would shut what the old one sealed."""
    path = tmp_path / "key"
    path.write_text(text)
    path.chmod(0o600)

    with pytest.raises(ValueError):
        file_cipher(path, SystemEntropy())
    assert path.read_text() == text


@pytest.mark.skipif(os.name != "posix", reason="file modes are POSIX's")
def test_a_key_file_that_others_may_read_is_refused(tmp_path: Path) -> None:
    """By its name, with what to do."""
    path = tmp_path / "key"
    file_cipher(path, SystemEntropy())
    path.chmod(0o640)

    with pytest.raises(ValueError, match="chmod 600"):
        file_cipher(path, SystemEntropy())


# --- KMS


def clients() -> Clients:
    return Clients(
        boto3.Session(aws_access_key_id="x", aws_secret_access_key="y", region_name="eu-central-1")
    )


def test_what_kms_is_asked() -> None:
    """A data key under the context for each text, and the same key and context to open it."""
    aws = clients()
    context = {"noema:space": "home/1"}
    with Stubber(aws.kms) as stub:
        stub.add_response(
            "generate_data_key",
            {"CiphertextBlob": b"wrapped", "Plaintext": FIRST, "KeyId": "k"},
            {"KeyId": "alias/noema", "KeySpec": "AES_256", "EncryptionContext": context},
        )
        stub.add_response(
            "decrypt",
            {"Plaintext": FIRST, "KeyId": "k"},
            {"CiphertextBlob": b"wrapped", "KeyId": "alias/noema", "EncryptionContext": context},
        )
        cipher = KmsCipher(aws, "alias/noema", CountingEntropy())

        assert cipher.open(cipher.seal(SECRET, "home/1"), "home/1") == SECRET
        stub.assert_no_pending_responses()


@pytest.mark.parametrize(
    ("code", "status", "fault"),
    [
        ("ThrottlingException", 400, Unavailable),
        ("KMSInternalException", 500, Unavailable),
        ("InvalidCiphertextException", 400, StoreFault),
        ("AccessDeniedException", 400, StoreFault),
        ("DisabledException", 409, StoreFault),
    ],
)
def test_what_kms_refuses(code: str, status: int, fault: type[Exception]) -> None:
    """Told by its code, as far as trying again may help or not."""
    aws = clients()
    aws.kms.meta.events.register("before-send", lambda **_: None)
    with Stubber(aws.kms) as stub:
        stub.add_client_error("generate_data_key", code, "secret text", status)

        with pytest.raises(fault) as caught:
            KmsCipher(aws, "k", CountingEntropy()).seal(SECRET, "c")
        assert (type(caught.value) is fault, "secret" in str(caught.value)) == (True, False)


@pytest.mark.ministack
def test_kms_on_the_local_aws(ministack: LocalAws) -> None:
    """The whole way, with a key of the service; and a text of one key does not open under another."""
    kms = ministack.shared.kms
    key = kms.create_key()["KeyMetadata"]["KeyId"]
    other = kms.create_key()["KeyMetadata"]["KeyId"]
    cipher = KmsCipher(ministack.shared, key, SystemEntropy())

    sealed = cipher.seal(SECRET, "home/1")

    assert SECRET not in sealed
    assert cipher.open(sealed, "home/1") == SECRET
    with pytest.raises(StoreFault):
        cipher.open(sealed, "home/2")
    with pytest.raises(StoreFault):
        KmsCipher(ministack.shared, other, SystemEntropy()).open(sealed, "home/1")
    with pytest.raises(StoreFault):
        cipher.open(sealed[:-1] + bytes([sealed[-1] ^ 1]), "home/1")
