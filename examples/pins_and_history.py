"""``History``: a list of messages with pins that calls keep compacted, saved and restored."""

from __future__ import annotations

from compacter import Compacter, History, InvalidHistoryError
from compacter.testing import ScriptedModel, ScriptedSummarizer, server_error


def main() -> None:
    """Pin, talk, save, fail, restore."""
    model = ScriptedModel(window=500, replies="I have written that down. " * 3)
    compacter = Compacter(
        summarizer=ScriptedSummarizer("They went through the guest list, room by room.")
    )
    completion = compacter.wrap(model.completion)

    history = History(
        [{"role": "system", "content": "You organise a wedding."}], compacter=compacter
    )
    history.append(
        {
            "role": "user",
            "content": ("Whatever happens: no nuts in any dish, my sister is allergic."),
        },
        pinned=True,
    )
    history.append({"role": "assistant", "content": "No nuts, anywhere."})
    for number in range(25):
        history.append(
            {
                "role": "user",
                "content": f"Guest {number} sits at table {number // 6 + 1}, next to the window.",
            }
        )
        history.append(completion("any-model", history)["choices"][0]["message"])
    print(
        f"{history!r}, compactions: {compacter.totals.rounds}; it holds what is sent, not "
        f"all that was said:"
    )
    for message in list(history)[:4]:
        print(f"  {message['role']}: {message['content'].splitlines()[0]}")

    saved = history.snapshot()
    print(f"saved: {len(saved)} characters of JSON, pins and summary included")

    history.compact(summary="The first guests have their seats.")  # by hand, with words of your own
    print(f"compacted by hand: {history!r}")

    failing = compacter.wrap(ScriptedModel(replies=server_error()).completion)
    before = list(history)
    try:
        failing("any-model", history)
    except Exception as error:  # noqa: BLE001 - whatever the provider raises
        print(
            f"{type(error).__name__}: the history is "
            f"{'as it was' if list(history) == before else 'changed'}"
        )

    history.restore(saved)
    print(f"restored: {history!r}")
    try:
        history.restore(saved.replace('"version": 1', '"version": 99'))
    except InvalidHistoryError as error:
        print(f"refused: {error}")


if __name__ == "__main__":
    main()
