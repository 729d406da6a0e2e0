"""What the arguments of a call say, read strictly; a mistake is an error the model can act on."""

from __future__ import annotations

from typing import Any, Final

import msgspec

from core.agents.tools.specs import MAX_COMMANDS
from core.errors import NoemaError
from core.models.chat import ToolCall

MAX_COMMAND: Final = 64_000  # characters of one command
MAX_PARAMETERS: Final = 128_000  # bytes of JSON


class KipCall(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Commands with the parameters they share."""

    commands: tuple[str, ...]
    parameters: dict[str, Any] = {}


class Named(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A symbol to declare."""

    name: str
    description: str = ""


class DeclareCall(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Symbols to declare."""

    types: tuple[Named, ...] = ()
    predicates: tuple[Named, ...] = ()


class NoteCall(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What to do with the notes."""

    action: str
    id: str = ""
    text: str = ""


class TopicCall(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Which section of the reference."""

    topic: str


def read_arguments[T: msgspec.Struct](call: ToolCall, cls: type[T]) -> T:
    """The arguments of a call as a value.

    Raises:
        NoemaError: InvalidInput naming the member.
    """
    try:
        return msgspec.convert(call.arguments, cls)
    except msgspec.ValidationError as error:
        raise _wrong(str(error)) from None


def read_kip(call: ToolCall) -> KipCall:
    """The commands of a call. A lone `command` is taken for a list of one: models write it so.

    Raises:
        NoemaError: InvalidInput.
    """
    arguments = dict(call.arguments or {})
    if "commands" not in arguments and isinstance(arguments.get("command"), str):
        arguments["commands"] = [arguments.pop("command")]
    if isinstance(arguments.get("commands"), str):
        arguments["commands"] = [arguments["commands"]]
    if arguments.get("parameters") is None:
        arguments.pop("parameters", None)
    found = read_arguments(ToolCall(call.id, call.name, arguments), KipCall)
    if not 1 <= len(found.commands) <= MAX_COMMANDS:
        raise _wrong(f"`commands` must hold 1 to {MAX_COMMANDS} commands")
    if any(not command.strip() or len(command) > MAX_COMMAND for command in found.commands):
        raise _wrong(f"a command must not be empty, and at most {MAX_COMMAND} characters")
    if len(msgspec.json.encode(found.parameters)) > MAX_PARAMETERS:
        raise _wrong(f"`parameters` must be at most {MAX_PARAMETERS} bytes of JSON")
    return found


def _wrong(problem: str) -> NoemaError:
    return NoemaError(
        "InvalidInput", problem, hint="Call again with arguments that follow the tool's schema."
    )
