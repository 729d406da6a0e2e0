"""Words that mean the same to a question: irregular forms, which a stemmer cannot bring together, and plain synonyms.

One small table of general English. What belongs to one subject or one conversation must never live here.
"""

from __future__ import annotations

from typing import Final

from core.search.text import words

_GROUPS: Final = """
begin began begun start; become became; break broke broken; bring brought; build built; buy bought purchase; catch caught;
choose chose chosen decide pick select; come came; cut; do did done; draw drew drawn; drink drank drunk; drive drove driven; eat ate eaten;
fall fell fallen; feel felt; fight fought; find found; fly flew flown; forget forgot forgotten; forgive forgave; get got gotten;
give gave given; go went gone; grow grew grown; hear heard; hide hid hidden; hold held; keep kept; know knew known; lead led;
leave left; lend lent; lose lost; make made; mean meant; meet met; pay paid; ride rode ridden; ring rang rung; run ran;
say said; see saw seen; sell sold; send sent; shake shook; shine shone; sing sang sung; sit sat; sleep slept; speak spoke spoken;
spend spent; stand stood; steal stole stolen; swim swam swum; take took taken; teach taught; tell told; think thought;
throw threw thrown; understand understood; wake woke woken; wear wore worn; win won; write wrote written;
kid child children son daughter; mother mom mum; father dad; grandmother grandma; grandfather grandpa; husband wife spouse partner;
brother sister sibling; like love enjoy prefer adore favourite favorite; hate dislike; photo picture pic image; movie film;
trip travel vacation holiday journey; job work career occupation; gift present; doctor physician; car vehicle; shop store;
fear afraid scared; happy glad; ill sick; big large; little small; talk chat; speak talk; quit resign; phone call; home house
"""


def _alike() -> dict[str, tuple[str, ...]]:
    found: dict[str, dict[str, None]] = {}
    for group in _GROUPS.replace("\n", " ").split(";"):
        terms = tuple(dict.fromkeys(words(group)))
        for term in terms:
            found.setdefault(term, {}).update(dict.fromkeys(other for other in terms if other != term))
    return {term: tuple(others) for term, others in found.items()}


ALIKE: Final = _alike()
