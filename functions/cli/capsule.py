"""`noema capsule`: memories out as Capsules, and in from them.

What lives here: the commands and their files. What must never live here: what a Capsule means. A service is reached over
HTTP, which bounds a Capsule to a few megabytes; a store in a folder is opened in this process, where whole spaces of any
size go line by line (docs/capsules.md).
"""

from __future__ import annotations

import gzip
import json
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import IO, Any, Final

import click
import msgspec

from core.capsule.read import MAX_BYTES, decode_artifact, read_capsule
from core.capsule.stream import MAX_LINE, Lines, is_lines, lines_of
from core.capsule.verify import report, verified_proofs, verify_artifact
from core.errors import NoemaError
from core.meta.capsules import described
from core.ports import Verifier
from core.protocol.capsule_types import ExportAsk, ImportWish, RestoreAsk
from core.service.callers import principal_of
from core.service.values import Caller
from functions.adapters import adapters
from functions.bootstrap import Services, build
from functions.cli.client import Client
from functions.cli.terminal import Failure, json_option, pause, service_options, space_option
from functions.settings import Settings, SettingsError, read_settings

_OPERATOR: Final = Caller("operator", "cli", "*", manager=True, everywhere=True)
_DEADLINE_MS: Final = 60_000
_WOULD: Final = {"commit": "It would be imported", "no_effect": "It is all here", "conflict": "It conflicts"}
_LISTED: Final = 20  # decisions, conflicts and gaps that a person is shown
_RESTORE: Final = ("owner", "tier", "accept_unsigned", "activate_schema")  # members of a `RestoreAsk`

data_option = click.option(
    "--data", type=click.Path(exists=True, file_okay=False, path_type=Path),
    help="A store's folder on this machine, opened in place of a service.",
)  # fmt: skip
signer_option = click.option(
    "--signer",
    "signers",
    multiple=True,
    metavar="NAME=KEY",
    help="A key whose signatures are known; can be repeated.",
)
file_argument = click.argument("file", type=click.Path(exists=True, dir_okay=False, path_type=Path))


@click.group()
def capsule() -> None:
    """Export a memory as a Capsule, look at one, or import it. A Capsule carries content, and no authority."""


# --- files


def _opened(file: Path) -> IO[bytes]:
    return gzip.open(file, "rb") if file.suffix == ".gz" else file.open("rb")  # type: ignore[return-value]


def _lines(file: Path) -> Iterator[bytes]:
    """The lines of a file, none longer than is read anyway, so that a small file cannot become a large one."""
    with _opened(file) as source:
        while line := source.readline(MAX_LINE + 2):
            yield line


def _artifact(file: Path) -> dict[str, Any]:
    """The Capsule in a file, whole."""
    with _opened(file) as source:
        body = source.read(MAX_BYTES + 1)
    return decode_artifact(body)


def _in_lines(file: Path) -> bool:
    return is_lines(next(iter(_lines(file)), b""))


def _source(file: Path) -> Iterable[bytes]:
    return _lines(file) if _in_lines(file) else lines_of(_artifact(file))


def _written(file: Path, pieces: Iterable[bytes]) -> int:
    """Write a file whole or not at all; gzip without a time, so that the same Capsule is the same file."""
    part = file.with_name(f"{file.name}.part")
    size = 0
    try:
        with part.open("wb") as raw:
            if file.suffix == ".gz":
                with gzip.GzipFile("", "wb", 6, raw, mtime=0) as packed:
                    for piece in pieces:
                        packed.write(piece)
                        size += len(piece)
            else:
                for piece in pieces:
                    raw.write(piece)
                    size += len(piece)
        part.replace(file)
    except OSError as error:
        raise Failure(f"{file} cannot be written: {error.strerror}") from error
    finally:
        part.unlink(missing_ok=True)
    return size


class _Told:
    """Turns what a service of this process raises into the end of a command."""

    def __enter__(self) -> None:
        """Nothing yet."""

    def __exit__(self, kind: object, error: BaseException | None, at: object) -> None:
        if isinstance(error, NoemaError):
            details = json.dumps(error.details, ensure_ascii=False)[:600] if error.details else ""
            raise Failure(f"{error.message} {details}".strip(), error.hint, code=error.code) from error
        if isinstance(error, (gzip.BadGzipFile, EOFError)):
            raise Failure("the file is no whole gzip file") from error


def _settings(signers: Iterable[str]) -> Settings:
    try:
        return read_settings({"NOEMA_SIGNERS": ",".join(signers)})
    except SettingsError as error:
        raise Failure(str(error).replace("NOEMA_SIGNERS", "--signer")) from error


def _verifier(signers: Iterable[str]) -> Verifier:
    """Checks signatures with no store at hand; its own key is one that nobody has."""
    settings = _settings(signers)
    return build(settings, adapters(settings)).keys


def _services(data: Path, signers: Iterable[str] = ()) -> Services:
    found = _settings(signers)
    settings = Settings(store="embedded", data_dir=str(data), insecure_local=True, signers=found.signers)
    return build(settings, adapters(settings))


# --- export


@capsule.command()
@click.argument("file", type=click.Path(dir_okay=False, path_type=Path))
@click.option(
    "--since", "since_seq", type=click.IntRange(0), help="A delta: only what was committed after this seq."
)
@click.option("--as-of", "as_of_seq", type=click.IntRange(0), help="As the space was at this seq.")
@click.option(
    "--include-schema/--no-include-schema", default=True, show_default=True,
    help="Let packages that not every engine has go along: without them a backup cannot be restored elsewhere.",
)  # fmt: skip
@click.option(
    "--without", multiple=True, metavar="CLASSIFICATION", help="Withhold elements of this classification."
)
@click.option("--sign/--no-sign", default=True, show_default=True, help="Sign with the deployment's key.")
@data_option
@space_option
@service_options
@json_option
def export(
    *, file: Path, since_seq: int | None, as_of_seq: int | None, include_schema: bool, without: tuple[str, ...],
    sign: bool, data: Path | None, space_id: str, url: str, token: str | None,
) -> tuple[str, object]:  # fmt: skip
    """Write a space into FILE (compressed if its name ends in .gz): a backup, or with --since what is new."""
    ask = ExportAsk(
        since_seq=since_seq, as_of_seq=as_of_seq, include_schema=include_schema, sign=sign, without=without
    )  # fmt: skip
    if data is None:
        told = msgspec.to_builtins(ask)
        body = {name: value for name, value in told.items() if value is not None}
        with Client(url, token) as client:
            made: dict[str, Any] = client.result("POST", f"/host/v1/{space_id}/capsules/export", body)
        pieces: Iterable[bytes] = [msgspec.json.encode(made)]
    else:
        with _Told():
            found = _services(data)
            who = principal_of(_OPERATOR, readonly=False)
            pieces = (
                found.capsules.lines(space_id, who, ask)
                if since_seq is None
                else [msgspec.json.encode(found.capsules.export(space_id, who, ask))]
            )
    with _Told():
        size = _written(file, pieces)
        told = _examined(file, _verifier(()))
    count = sum(told["counts"].values())
    text = f"Wrote {file}: {count:,} records, {size:,} bytes, seq {told['snapshot_seq']}.\n  {told['content_digest']}"
    return text, {"file": str(file), "bytes": size, **told}


def _examined(file: Path, verifier: Verifier) -> dict[str, Any]:
    """The verification of a file, whichever way it holds its Capsule.

    Raises:
        NoemaError: what is wrong with it.
    """
    if not _in_lines(file):
        artifact = _artifact(file)
        found = verify_artifact(artifact, verifier.check)
        capsule_ = read_capsule(artifact)
        shape, counts = capsule_.artifact, capsule_.artifact.payload.manifest.counts
    else:
        lines = Lines(_lines(file))
        for _ in lines.records():
            pass
        digest = lines.finish()
        assert lines.integrity is not None, "finished"
        shape, counts = (
            msgspec.structs.replace(lines.artifact, integrity=lines.integrity),
            lines.payload.manifest.counts,
        )
        found = report(shape, digest, verified_proofs(shape, digest, verifier.check))
    claims = described(shape, str(found["content_digest"]))
    source = shape.payload.source
    return {
        **found,
        "kind": shape.payload.manifest.kind,
        "completeness": shape.payload.manifest.completeness,
        "counts": counts,
        "snapshot_seq": source.snapshot_seq,
        "base_seq": source.base_seq,
        "source": source.space_ref,
        "external_refs": claims["external_refs"]["counts"],
        "schema": claims["schema"],
    }


# --- verify


@capsule.command()
@file_argument
@signer_option
@data_option
@json_option
def verify(file: Path, signers: tuple[str, ...], data: Path | None) -> tuple[str, object]:
    """Check that FILE is what was signed. Needs no service; --data knows the key of that store."""
    with _Told():
        verifier = _services(data, signers).keys if data is not None else _verifier(signers)
        told = _examined(file, verifier)
    proofs = [
        f"signed by {each.get('signer') or 'an unknown key'}: {each['verification_method']}"
        for each in told["proofs"]
    ] or ["not signed"]
    lines = [
        f"Intact: {told['kind']} of {told['source']} at seq {told['snapshot_seq']}, {told['completeness']}.",
        f"  {told['content_digest']}",
        "  " + ", ".join(f"{count:,} {name}" for name, count in sorted(told["counts"].items())),
        *(f"  {proof}" for proof in proofs),
        "Intact does not mean true or trusted.",
    ]
    return "\n".join(lines), told


# --- preview and import


def _mappings(pairs: tuple[str, ...]) -> dict[str, str]:
    found = dict(pair.partition("=")[::2] for pair in pairs)
    if not all(found) or not all(found.values()):
        raise Failure("a mapping is written as ref=id", "For example --map c:3=C-00000002001abcde.")
    return found


def _wish_options(command: Any) -> Any:  # a command
    for option in (
        click.option(
            "--map", "pairs", multiple=True, metavar="REF=ID", help="This record is that element here."
        ),
        click.option("--trust-canonical-ids", is_flag=True, help="Let canonical ids say who is who."),
        click.option("--partial", is_flag=True, help="Leave out what cannot be resolved."),
        click.option(
            "--follow", is_flag=True, help="A delta's archivals and deletions too (never as erasure)."
        ),
    ):
        command = option(command)
    return command


def _wish(mode: str, options: dict[str, Any]) -> dict[str, Any]:
    """The members of an `ImportWish` that the options say."""
    return {
        "mode": mode,
        "mappings": _mappings(options["pairs"]),
        "trust_canonical_ids": options["trust_canonical_ids"],
        "partial": options["partial"],
        "lifecycle": "follow" if options["follow"] else "ignore",
    }


@capsule.command()
@file_argument
@click.option("--mode", type=click.Choice(["merge", "isolate"]), default="merge", show_default=True)
@_wish_options
@data_option
@space_option
@service_options
@json_option
def preview(
    *, file: Path, mode: str, data: Path | None, space_id: str, url: str, token: str | None, **options: Any
) -> tuple[str, object]:
    """Show what importing FILE would do to a space now. Nothing is written."""
    wish = _wish(mode, options)
    with _Told():
        artifact = _whole(file)
        if data is not None:
            who = principal_of(_OPERATOR, readonly=False)
            found: dict[str, Any] = _services(data).capsules.preview(
                space_id, who, artifact, ImportWish(**wish)
            )
        else:
            with Client(url, token) as client:
                body = {"capsule": artifact, **wish}
                found = client.result("POST", f"/host/v1/{space_id}/capsules/preview", body)
    return _shown(found), found


def _whole(file: Path) -> dict[str, Any]:
    """A Capsule as one value, in whichever form its file is."""
    return _joined(file) if _in_lines(file) else _artifact(file)


def _joined(file: Path) -> dict[str, Any]:
    """A Capsule in lines as one value, within what one import takes."""
    lines = Lines(_lines(file))
    records: dict[str, list[Any]] = {}
    size = 0
    for line in list(_lines(file))[1:]:
        size += len(line)
        if size > MAX_BYTES:
            raise Failure(
                "the backup is too large to be merged", "Restore it into a new space: --mode restore."
            )
        value = json.loads(line)
        if "integrity" in value:
            payload = {**lines.header, "records": records}
            return {
                "format": lines.artifact.format,
                "version": lines.artifact.version,
                "payload": payload,
                **value,
            }
        for plural, record in value.items():
            records.setdefault(plural, []).append(record)
    raise Failure("the Capsule ends before its last line")


def _is_telling(decision: dict[str, Any]) -> bool:
    """Whether a person should look at a decision: not at what is new, and not at what came before."""
    known = decision["act"] == "map" and decision["basis"] in {"import_mapping", "same_space"}
    return not known and decision["act"] != "create"


def _shown(found: dict[str, Any]) -> str:
    plan = found["plan"]
    lines = [f"{_WOULD[found['would']]}: " + ", ".join(f"{n} {act}" for act, n in plan["counts"].items())]
    for each in [each for each in plan["decisions"] if _is_telling(each)][:_LISTED]:
        told = f" ({each['problem']})" if "problem" in each else ""
        lines.append(f"  {each['ref']:<8} {each['act']:<10} {each['basis']}  {each.get('local', '')}{told}")
    lines += [
        f"  {gap.get('ref', gap.get('external_ref'))}: {gap.get('field', '')} is {gap['kind']}"
        for gap in found["gaps"][:_LISTED]
    ]
    lines.append(f"  plan {found['import_plan_digest']}")
    return "\n".join(lines)


@capsule.command("import")
@file_argument
@click.option("--mode", type=click.Choice(["merge", "isolate", "restore"]), default="merge", show_default=True,
              help="restore makes a new space out of a backup.")  # fmt: skip
@click.option("--plan", "plan_digest", help="The digest that a preview showed; anything else is refused.")
@_wish_options
@click.option("--owner", default="me", help="Restore: whose the new space is.")
@click.option("--tier", type=click.IntRange(0, 14), help="Restore: its size class; the backup's without it.")
@click.option(
    "--accept-unsigned", is_flag=True, help="Restore: on your word that this is the memory's own backup."
)
@click.option("--activate-schema", is_flag=True, help="Restore: put the packages that came along into force.")
@signer_option
@data_option
@space_option
@service_options
@json_option
def import_capsule(
    *,
    file: Path,
    mode: str,
    plan_digest: str | None,
    signers: tuple[str, ...],
    data: Path | None,
    space_id: str,
    url: str,
    token: str | None,
    **options: Any,
) -> tuple[str, object]:
    """Import FILE into a space, or restore it as a new one. Importing it again changes nothing."""
    if mode == "restore":
        asked = {name: options[name] for name in _RESTORE if options[name] is not None}
        found = _restore(file, asked, space_id, (url, token) if data is None else _services(data, signers))
        why = found["continuity"]
        word = f"signed by {why['signer']}" if why["basis"] == "signature" else "on your word"
        return f"Restored {found['records']:,} records into {space_id} ({word}).", found
    wish = _wish(mode, options)
    with _Told():
        artifact = _whole(file)
        if data is not None:
            services = _services(data, signers)
            found = services.capsules.run(
                space_id, principal_of(_OPERATOR, readonly=False), artifact, ImportWish(**wish),
                deadline=services.clock.now() + _DEADLINE_MS, plan_digest=plan_digest,
            )  # fmt: skip
        else:
            body = {"capsule": artifact, **wish} | (
                {} if plan_digest is None else {"plan_digest": plan_digest}
            )
            with Client(url, token) as client:
                found = client.result("POST", f"/host/v1/{space_id}/capsules/import", body)
    created = ", ".join(f"{count} {kind}" for kind, count in found["created"].items()) or "nothing new"
    return f"{found['receipt']['status']}: {created}; {found['updated']} updated", found


def _restore(
    file: Path, asked: dict[str, Any], space_id: str, where: Services | tuple[str, str | None]
) -> dict[str, Any]:
    with _Told():
        if isinstance(where, tuple):
            artifact = _whole(file)
            with Client(*where) as client:
                body = {"capsule": artifact, **asked}
                made: dict[str, Any] = client.result("POST", f"/admin/{space_id}/restore_capsule", body)
                return made

        def told(done: int, total: int) -> None:
            click.echo(f"\r{done:,} of {total:,}", nl=done == total, err=True)

        ask = RestoreAsk(**asked)
        found = where.restores.restore(_OPERATOR, space_id, lambda: _source(file), ask, told)
        while where.upkeep.compact(space_id, where.entropy.token(8).hex()) is not None:
            pause(0.0)
        return found
