"""Trying again: what is worth another try, how long to wait before it, and when to give up.

What lives here: the one loop of all providers. What must never live here: a wire. Text that went out to the caller
cannot be taken back, so a reply that broke off behind it is never asked for again.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

import msgspec

from core.model.instants import Instant
from core.models.chat import ChatReply, FaultKind, ModelFault, Usage
from core.ports import Clock, Entropy

TRIES: Final[dict[FaultKind, int]] = {"rate_limited": 6, "unavailable": 5, "timeout": 2, "bad_reply": 2}
"""How often a request is sent at most, by the fault it last met. The others are final at once."""
FIRST_WAIT_MS: Final = 500
LONGEST_WAIT_MS: Final = 20_000
_SLICE_S: Final = 0.25  # of a wait, after which it is asked whether all is cancelled

Cancelled = Callable[[], bool] | None


class Spoken:
    """Passes text on to the caller, and knows whether any was."""

    def __init__(self, on_text: Callable[[str], None] | None) -> None:
        self._on_text = on_text
        self.began = False

    @property
    def wanted(self) -> bool:
        """Whether the caller wants text as it comes."""
        return self._on_text is not None

    def say(self, text: str) -> None:
        """Pass a piece on."""
        if text and self._on_text is not None:
            self.began = True
            self._on_text(text)


class Patience:
    """How requests are repeated. Time and chance are its arguments."""

    def __init__(self, clock: Clock, entropy: Entropy) -> None:
        self._clock = clock
        self._entropy = entropy

    def until(
        self,
        deadline: Instant,
        attempt: Callable[[], ChatReply],
        *,
        spoken: Spoken,
        size: int,
        cancelled: Cancelled = None,
    ) -> ChatReply:
        """The reply of the first attempt that has one; its usage counts every request that was sent.

        Args:
            deadline: when to give up.
            attempt: sends the request once.
            spoken: whether text went out.
            size: about how many tokens the request is. One that the provider took and gave no readable answer to is
                counted at that, for it is most likely on the bill.
            cancelled: asked whether to give up.

        Raises:
            ModelFault: the last fault, with the usage of all attempts.
        """
        tries, spent = 0, Usage()
        while True:
            self.check(deadline, cancelled, spent)
            tries += 1
            try:
                reply = attempt()
            except ModelFault as fault:
                spent = spent.plus(_billed(fault, size))
                wait = wait_ms(fault, tries, self._entropy)
                final = tries >= TRIES.get(fault.kind, 1) or spoken.began
                if final or self._clock.now() + wait >= deadline:
                    raise fault.costing(spent) from fault
                self._pause(wait, cancelled, spent)
                continue
            return msgspec.structs.replace(reply, usage=spent.plus(reply.usage))

    def check(self, deadline: Instant, cancelled: Cancelled, spent: Usage | None = None) -> None:
        """Go on, or give up.

        Raises:
            ModelFault: "cancelled" or "timeout".
        """
        if cancelled is not None and cancelled():
            raise ModelFault("cancelled", "the request was cancelled", usage=spent)
        if self._clock.now() >= deadline:
            raise ModelFault("timeout", "the model did not answer before the deadline", usage=spent)

    def _pause(self, wait_ms: int, cancelled: Cancelled, spent: Usage) -> None:
        until = self._clock.now() + wait_ms
        while (left := until - self._clock.now()) > 0:
            if cancelled is not None and cancelled():
                raise ModelFault("cancelled", "the request was cancelled", usage=spent)
            self._clock.sleep(min(_SLICE_S, left / 1000))


def wait_ms(fault: ModelFault, tries: int, entropy: Entropy) -> int:
    """How long to wait after so many tries: full jitter, but never less than the provider asks for."""
    most = min(LONGEST_WAIT_MS, FIRST_WAIT_MS * 2 ** (tries - 1))
    return int(entropy.uniform(0, most)) + (fault.retry_after_ms or 0)


def _billed(fault: ModelFault, size: int) -> Usage:
    said = fault.usage
    if fault.kind in ("timeout", "bad_reply") and said.requests and not said.input_tokens:
        return msgspec.structs.replace(said, input_tokens=size)
    return said
