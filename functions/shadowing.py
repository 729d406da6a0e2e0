"""Shadow evaluation over HTTP: started, and asked for again until its report is whole.

What lives here: the 202 while it works. What must never live here: evaluating (`core.service.shadow`), which takes longer than
a request may, and which the function that manages has no right to: it invokes no model.
"""

from __future__ import annotations

from typing import Final

import msgspec

from core.ports import Unavailable
from core.protocol.memory_types import ShadowReport
from core.service.hints import SHADOW, send_hint
from functions.bootstrap import Services
from functions.http import HttpResponse
from functions.logs import logger
from functions.negotiate import encode_result
from functions.routing import Call

_ASK_AGAIN_S: Final = 5


def evaluate(found: Services, call: Call) -> HttpResponse | ShadowReport:
    """The report of the evaluation that is wished for; 202 with what there is of it while it works.

    Each request hints at the work anew, so that a hint that was lost is made up for by whoever waits.

    Raises:
        NoemaError: as `Shadows.submit`.
    """
    report = found.shadows.submit(call.caller, call.space, call.body)
    if report.status != "working":
        return report
    try:
        send_hint(found.queue, found.entropy, call.space, SHADOW)
    except Unavailable:
        logger().warning("hint lost", extra={"space": call.space, "work": SHADOW})
    response = encode_result(call.request, {"result": report}, None)
    headers = {**response.headers, "retry-after": str(_ASK_AGAIN_S)}
    return msgspec.structs.replace(response, status=202, headers=headers)
