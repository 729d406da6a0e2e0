"""The prompt of formation: stable bytes, examples that parse, a section that can be replaced and nothing else."""

import re

import pytest

from core.agents.prompts.formation import MAX_DEPLOYMENT, PREFIX, VERSION, system_prompt
from core.agents.prompts.kip_card import CARD, SECTIONS
from core.agents.tools.specs import (
    DECLARE_SYMBOLS,
    EXECUTE_KIP,
    EXECUTE_KIP_READONLY,
    FORMING,
    KIP_REFERENCE,
    NOTES,
)
from core.errors import NoemaError
from core.language import parse
from core.models.budget import estimate


def examples() -> list[str]:
    """The statements in the card's code blocks."""
    found: list[str] = []
    for block in re.findall(r"```kip\n(.*?)```", CARD, re.DOTALL):
        held = ""
        for line in block.splitlines():
            held += line + "\n"
            try:
                parse(held)
            except NoemaError:
                continue
            found.append(held)
            held = ""
        assert not held.strip(), held
    return found


def test_every_example_of_the_card_parses():
    """The card teaches nothing that the language refuses."""
    assert len(examples()) >= 18


def test_the_card_is_short():
    """The prompt costs at most four thousand tokens a request, a deployment's section left out."""
    assert estimate(PREFIX) <= 4_000


def test_the_deployments_section_comes_last():
    """What is the same everywhere comes first, byte for byte; the section follows."""
    assert system_prompt() == PREFIX
    assert system_prompt(" \n") == PREFIX
    own = system_prompt("Remember ticket numbers.")
    assert own.startswith(PREFIX)
    assert own.endswith("# A. Of this deployment\n\nRemember ticket numbers.\n")


def test_a_section_has_a_bound():
    """Above 128 KiB it is refused by name."""
    system_prompt("x" * MAX_DEPLOYMENT)
    with pytest.raises(NoemaError) as caught:
        system_prompt("ü" * MAX_DEPLOYMENT)
    assert caught.value.code == "PayloadTooLarge"


def test_the_version_names_both_texts():
    """A record can tell with which prompt it was made."""
    assert VERSION == "formation-1+kip-card-1"


@pytest.mark.parametrize("tool", [EXECUTE_KIP, EXECUTE_KIP_READONLY, KIP_REFERENCE, DECLARE_SYMBOLS, NOTES])
def test_tools_have_plain_schemas(tool):
    """No $ref and no combinators, which some providers refuse (contract §8)."""
    text = str(tool.parameters)
    assert tool.parameters["type"] == "object"
    assert not any(word in text for word in ("$ref", "oneOf", "anyOf", "allOf"))
    assert tool.description
    assert tool.name in {each.name for each in FORMING} | {EXECUTE_KIP_READONLY.name}


def test_every_section_can_be_asked_for():
    """The reference offers what the card has, and the schema."""
    topics = KIP_REFERENCE.parameters["properties"]["topic"]["enum"]  # type: ignore[index,call-overload]
    assert topics == [*SECTIONS, "schema"]
