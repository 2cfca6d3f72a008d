"""How plainly a line is an order or a correction, by its form."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Sequence

from compacter.lines.read import split
from compacter.lines.words import words
from compacter.messages.fields import flat

# Text that may precede an order: a number, "One rule:", "And please".
_LEAD = re.compile(
    r"\W{0,8}(?:\d{1,2}[.)]\s)?(?:[^:.!?]{1,60}:\s+)?"
    r"(?:(?:and|but|so|ok(?:ay)?|also|then|well|just|please|again|important)\b[\s,:-]{1,3}){0,3}"
)

# Plain English forms of orders, in small letters: how plain they are, how such a sentence begins,
# and words anywhere in it. The second row has corrections. Other languages stay as the user's short
# messages.
_TABLE = (
    (
        3,
        """always, never, do not, don't, don’t, only, make sure, ensure, be sure, avoid,
            stop, remember, no longer, under no, before you, when you, whenever you, if you, unless
            you, until you, after you, each time you, every time you""",
        """from now, from here on, for the rest, going forward, at all times, must not,
            you should not, you shouldn't, you may not, you may only, you
            should only, you should always, you should never, you cannot, i want you to, i need you
            to, i'd like you to, i would like you to""",
    ),
    (
        2,
        """no, no,, nope, nope,, wrong, actually, actually,, correction, correction,,
            instead, instead,, wait, wait,, sorry, sorry,, undo, revert""",
        """changed my mind, change of plan, i meant, is now, are now, decided again, scratch
            that, renamed, moved to, changed to, extended to, instead, any more, is fine,
            is allowed""",
    ),
    (
        1,
        """add, answer, ask, begin, call, change, check, create, delete, do, end, explain,
            fix, follow, format, give, go, implement, include, keep, leave, let, list, look, make,
            merge, move, name, open, pick, prefer, put, read, remove, rename, reply, report,
            respond, return, review, run, send, set, show, start, tell, test, try, update, use,
            wait, work, write""",
        """please, you must, you should, you have to, you need to, instead of, rather than, should
            be, needs to be, has to be, have to be""",
    ),
)
# The forms by their longest words, each with its weight and a blank behind it, those of a beginning
# after a line break.
_FORMS = defaultdict[str, list[tuple[int, str]]](list)
for _weight, *_places in _TABLE:
    for _before, _place in zip(("\n", ""), _places, strict=True):
        for _form in flat(_place).split(", "):
            _FORMS[max(words(_form), key=len)].append((_weight, f"{_before}{_form} "))


def order_strength(text: str, said: Sequence[str]) -> int:
    """Return a number from 0 to 3 that says how plainly a line is an order or a correction: 0 for
    no order, 3 for a plain order such as "Never ...".
    """
    if not (known := _FORMS.keys() & said):
        return 0
    strength = 0
    for each in split(text):
        low = _LEAD.sub(r"\g<0>\n", f"{each.lower().rstrip('.!')} ", count=1)
        found = [weight for word in known for weight, form in _FORMS[word] if form in low]
        # Somebody who calls out orders less: "Never give up!"
        strength = max(strength, max(found, default=0) - each.endswith("!"))
    return strength
