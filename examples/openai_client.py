"""Wrap a whole client: the copy has the same type and methods, and the original is unchanged."""

from __future__ import annotations

from openai.types.chat import ChatCompletionMessageParam

from compacter import Compacter
from compacter.testing import ScriptedServer


def main() -> None:
    """Forty questions, through the client and through one with other options."""
    compacter = Compacter(summarizer="extractive")  # no second model is asked
    with ScriptedServer(
        window=600, replies="We see the harbour, and eat what came in with the tide."
    ) as server:
        # An `openai.OpenAI` whose provider is a scripted model on this machine.
        plain = server.openai()
        client = compacter.wrap(plain)
        print(f"wrapped: {type(client).__name__}, a copy; the original is as it was")
        assert client is not plain

        history: list[ChatCompletionMessageParam] = [
            {"role": "system", "content": "You plan journeys."}
        ]
        for day in range(40):
            history.append(
                {
                    "role": "user",
                    "content": (f"Day {day + 1}: what do we see, and where do we eat?"),
                }
            )
            chosen = client if day % 2 else client.with_options(timeout=30)  # which stays wrapped
            reply = chosen.chat.completions.create(model="pretend-1", messages=history)
            history.append({"role": "assistant", "content": reply.choices[0].message.content})
        print(
            f"{len(history)} messages, {server.model.rejected} refused, "
            f"{compacter.totals.rounds} compacted"
        )


if __name__ == "__main__":
    main()
