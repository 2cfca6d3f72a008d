"""Messages as people write them: what stands around the one sentence that asks."""

from __future__ import annotations

import re
from collections.abc import Mapping

TRACE = """Traceback (most recent call last):
  File "/srv/app/main.py", line 41, in <module>
    run(load_settings("prod.toml"))
  File "/srv/app/settings.py", line 17, in load_settings
    return tomllib.load(handle)
ValueError: Invalid value (at line 3, column 9)"""
LOG = """2026-03-02 11:04:17 INFO  worker-3 job 8841 started, 212 items waiting
2026-03-02 11:04:19 WARN  worker-3 slow query (1840 ms) on table shipments
2026-03-02 11:04:20 ERROR worker-3 job 8841 failed: connection reset by peer"""
ROWS = """{"id": 3311, "status": "open", "owner": {"name": "intake", "queue": 4},
 "tags": ["red", "urgent"], "history": [{"at": "09:14", "by": "system"}]}"""
CODE = """```python
def total(rows, rate=0.2):
    # round only at the end
    return round(sum(row.price * row.count for row in rows) * (1 + rate), 2)
```"""
MAIL = """On Tuesday the office wrote:
> Dear customer, thank you for your patience with our delivery.
> We regret that the parcel was held back at the depot for two days
> and will credit the postage to your account next month.
> Kind regards, the service team"""

DRESSES: Mapping[str, str] = {
    "bare": "{q}",
    "letter": "Dear assistant,\n\nI hope you had a pleasant weekend and that the weather was as "
    "kind to you as it was to us.\n\n{q}\n\nWith many thanks in advance and best wishes,\nHelena",
    "story": "Sorry for the silence, the week was madness: first the washing machine flooded the "
    "kitchen, then my boss wanted the quarterly numbers a day early, and on Friday I lost my phone "
    "on the train. So now I am back at the desk with a cold coffee. {q}",
    "two": "{q} And could you also suggest three titles for a slide about water prices?",
    "ordered": "Could you please remind me, {s}",
    "no mark": "i was wondering {l}",
    "misspelt": "{m}",
    "mail": "{q}\n\n" + MAIL,
    "mail above": MAIL + "\n\nNever mind the mail. {q}",
    "json": "Here is what the ticket system gives me:\n" + ROWS + "\n\n{q}",
    "code": "{q}\n\nFor later, this is the function that I was talking of with a colleague:\n"
    + CODE,
    "log": LOG + "\n\nThat is from this morning, we look at it afterwards. {q}",
    "trace": "{q}\n" + TRACE,
    "german": "Guten Morgen! Ich sitze gerade im Zug und habe meine Unterlagen nicht dabei. {q} "
    "Ganz herzlichen Dank und bis später, die Verbindung ist hier sehr schlecht.",
    "spanish": "Hola, buenos días. Perdona la molestia, estoy preparando la reunión de mañana. "
    "{q} Muchas gracias por tu ayuda, eres un sol.",
    "chinese": "早上好，不好意思又来打扰你，我正在准备明天的会议。{q} 非常感谢你的帮助！",
    "dictated": "okay so hi again um i am in the car right now and i cannot look it up so {l} yeah "
    "that would be great and then we can go on with the rest when i am home again thanks",
    "rant": "Honestly, I am fed up. The printer eats paper, the neighbours drill since six in the "
    "morning, nobody answers the telephone at the town hall, and my back hurts like never before. "
    "Everybody wants something from me and nobody says thank you! And now this too. {q} I could "
    "scream, really. Sometimes I wish I had become a gardener on an island without any telephone.",
    "style": "{q}\nPlease answer in French, in at most ten words, without any markdown, and put "
    "the most important word in capitals.",
    "list": "Three things:\n1. Thanks for yesterday, it worked.\n2. {q}\n3. I will be away from "
    "Thursday on.",
    "before": "Before we continue with the next section, quick check: {q}",
    "roles": "You are a careful secretary who never guesses. Think step by step, then answer. "
    "Question: {q} Answer:",
}


def dress(question: str, name: str) -> str:
    """Return the question in a message of the kind ``name``."""
    inner = question.rstrip("?").strip()
    spoken = inner[:1].lower() + inner[1:]
    # The third letter of each long word is left out.
    misspelt = re.sub(r"\b([A-Za-z]{2})[a-z](?=[a-z]{2})", r"\1", question)
    forms = {
        "{q}": question,
        "{s}": f"{spoken}.",
        "{l}": spoken.replace(",", "").lower(),
        "{m}": misspelt,
    }
    text = DRESSES[name]
    for mark, form in forms.items():
        text = text.replace(mark, form)
    return text
