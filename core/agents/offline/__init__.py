"""The offline provider: a deterministic reader of plain statements that needs no model.

It files every message as Evidence, recognises what people plainly say of themselves and each other, and answers
by extraction. It prefers silence to a guess: a question, a supposition, a quotation or a joke makes no claim.
"""

from typing import Final

MODEL: Final = "offline-extractive-1"
