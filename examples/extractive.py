"""Summaries without a model: rules choose lines of the conversation, in milliseconds, for free."""

from __future__ import annotations

from compacter import Compacter


def main() -> None:
    """A support conversation, to a third of its size."""
    talk = [
        ("user", "Hello! Since this morning I cannot log in to the customer portal any more."),
        (
            "assistant",
            (
                "I am sorry to hear that. Let us find out what is wrong. Which account is "
                "it, please?"
            ),
        ),
        (
            "user",
            (
                "It is acme-4711, and the error says AUTH-0042. Never reset my password "
                "without asking me."
            ),
        ),
        (
            "assistant",
            (
                "Thank you. I can see account acme-4711. I will not reset anything without "
                "asking you first."
            ),
        ),
        (
            "user",
            (
                "That is kind. It is a bit grey outside today, is it not? I hope the sun will "
                "be back soon."
            ),
        ),
        (
            "assistant",
            "It is! Let us hope so. Now, the log shows 5 failed attempts from 192.0.2.17 at 08:14.",
        ),
        (
            "user",
            (
                "That is our office in Graz, so this was somebody of ours. What is to be done "
                "about it?"
            ),
        ),
        (
            "assistant",
            (
                "The account is locked until 12:00 by rule SEC-7; I can unlock it at once if "
                "you confirm."
            ),
        ),
        ("user", "Please do. And write to ops@example.com when it is done, the deadline is 11:30."),
    ]
    messages = [{"role": role, "content": content} for role, content in talk]
    compacter = Compacter(summarizer="extractive")
    size = sum(len(content) for _, content in talk)
    result = compacter.compact(messages, budget=size // 2)
    print(
        f"{size} characters became {sum(len(message['content']) for message in result.messages)}:"
    )
    for message in result.messages:
        print(f"\n{message['role']}: {message['content']}")


if __name__ == "__main__":
    main()
