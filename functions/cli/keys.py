"""`noema keygen` and `noema token`: signing keys, and the tokens they sign."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import click

from core.errors import NoemaError
from core.model.ids import check_space_id
from functions.cli.terminal import Failure, json_option, now_s
from functions.cwts import MAX_LIFE_ANY_SPACE_S, MAX_LIFE_S, is_subject


@click.command()
@click.argument("file", type=click.Path(dir_okay=False, path_type=Path), default="noema.key")
@click.option("--show", is_flag=True, help="Print the public half of the key that is in FILE; make none.")
@json_option
def keygen(file: Path, *, show: bool) -> tuple[str, object]:
    """Make an Ed25519 signing key in FILE (default noema.key), and print its public half.

    Whoever has FILE can mint tokens: keep it off the servers, which need only the public half.
    """
    from functions.minting import generate_key, public_key_of  # noqa: PLC0415 - it imports a cryptography library

    if show:
        public = _from_file(file, public_key_of)
        return public, {"file": str(file), "public_key": public}
    private, public = generate_key()
    try:
        # O_EXCL: an existing key is never overwritten. 0600: nobody else reads it.
        with os.fdopen(os.open(file, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w") as out:
            out.write(private + "\n")
    except FileExistsError as error:
        raise Failure(f"{file} exists already", "Name another file, or move that one away.") from error
    except OSError as error:
        raise Failure(f"{file} cannot be written: {error.strerror}") from error
    text = (
        f"The private key is in {file}. Keep it secret.\n"
        f"Tell the service its public half:\n\n    ED25519_PUBKEYS={public}\n\n"
        "For /admin as well: the same in NOEMA_ADMIN_PUBKEYS (another key is safer), and MANAGERS=<who>."
    )
    return text, {"file": str(file), "public_key": public}


@click.command()
@click.option("--key", "key_file", type=click.Path(path_type=Path), default="noema.key", show_default=True,
              help="The private key that `noema keygen` made.")  # fmt: skip
@click.option("--sub", required=True, help="Who the token is for: a name of up to 128 printable characters.")
@click.option("--aud", required=True, help="The space it opens, or * for all of them and for /admin.")
@click.option("--scope", type=click.Choice(["read", "write", "*"]), default="*", show_default=True)
@click.option("--life", "life_s", type=click.IntRange(1, MAX_LIFE_S), default=3600, show_default=True,
              help="Seconds until it expires: at most a day, an hour with --aud '*'.")  # fmt: skip
@click.option("--kid", help="The key's name, if the service knows it by one.")
@json_option
def token(
    *, key_file: Path, sub: str, aud: str, scope: str, life_s: int, kid: str | None
) -> tuple[str, object]:
    """Mint a token: a CWT, signed with a private key."""
    from functions.minting import mint  # noqa: PLC0415 - it imports a cryptography library

    if aud == "*" and life_s > MAX_LIFE_ANY_SPACE_S:
        raise Failure("a token for every space lives an hour at most", "Give --life 3600 or less.")
    if not is_subject(sub):
        raise Failure(
            f"no service admits {sub!r}",
            "--sub is 1 to 128 printable characters; `anonymous`, `token:...` and `system:...` are taken.",
        )
    try:
        check_space_id(aud if aud != "*" else "any")
    except NoemaError as error:
        raise Failure(f"--aud: {error.message}", "Name a space, or * for every space.") from error
    now = now_s()
    minted = _from_file(
        key_file,
        lambda private: mint(
            private,
            subject=sub,
            audience=aud,
            scope=scope,
            now_s=now,
            life_s=life_s,
            kid=kid.encode() if kid else None,
        ),
    )
    return minted, {
        "token": minted,
        "sub": sub,
        "aud": aud,
        "scope": scope,
        "expires_at": (now + life_s) * 1000,
    }


def _from_file(file: Path, use: Callable[[str], str]) -> str:
    """What `use` makes of the private key in a file."""
    try:
        return use(file.read_text("ascii").strip())
    except FileNotFoundError as error:
        raise Failure(f"there is no key in {file}", "Make one with `noema keygen`.") from error
    except OSError as error:
        raise Failure(f"{file} cannot be read: {error.strerror}") from error
    except (ValueError, UnicodeDecodeError) as error:
        raise Failure(f"{file} holds no private key", "Make one with `noema keygen`.") from error
