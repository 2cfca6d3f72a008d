from __future__ import annotations

from typing import Any

import pytest

from compacter.messages.parts import Entry
from compacter.summaries import gate, prompts

TALK = [
    Entry("user", "text", "Please move the billing job to the new queue. Never touch the production database."),
    Entry("assistant", "text", "I moved the billing job to queue jobs-eu-7 and checked that it runs every hour."),
    Entry("user", "text", "Good. What is left to do before the release on Friday?"),
    Entry(
        "assistant",
        "text",
        "The alert for the queue length is missing, and the old worker still has to be switched off.",
    ),
]


def judge(text: str, **options: Any) -> gate.Verdict:
    return gate.judge(text, **{"limit_chars": 10_000, "entries": TALK, **options})


@pytest.mark.parametrize(
    "text",
    [
        "SUMMARY: deploy rollback cluster latency budget schema migrate index",
        "A short summary of what came before.",
        "Task: move the billing job.\nState: moved to jobs-eu-7.\nOpen: alert, old worker.",
        "The user wants the billing job moved. The assistant refused: \"I'm sorry, but I can't do that.\"",
        "The user greeted the assistant ('Hello!') and asked to move a job.",
        "Hello-world service moved to another queue; alert missing.",
        "Sure! Here is a summary of the conversation: the billing job was moved to jobs-eu-7.",
        "User: wants the billing job moved.\nThe assistant did it; the alert is missing.",
        "Der Benutzer möchte den Billing-Job verschieben; der Alarm fehlt noch.",
        "Nothing of note happened so far.",
        "- billing job moved\n- Sorry state of the alerts: none\n- cannot switch off the old worker yet",
        "1. Moved job\n2. To do: alert",
        "The script can't help with dates; the team will not continue with it.",
        "They cannot provide access yet. Access is asked for in ticket OPS-17.",
    ],
)
def test_a_summary_is_accepted(text: str) -> None:
    verdict = judge(text)
    assert verdict.accepted, verdict.reason


@pytest.mark.parametrize("text", ["", " \n\t", "...", "\u200b", "---\n***"])
def test_an_answer_without_words_is_empty(text: str) -> None:
    assert judge(text).reason == "the summary is empty"


@pytest.mark.parametrize(
    "text",
    [
        "I'm sorry, but I can't help with that.",
        "I’m sorry, but I can’t assist with that request.",
        "I cannot summarize this conversation.",
        "Sorry, I am unable to provide a summary of this content.",
        "I can't comply with this request as it goes against my guidelines.",
        "Unfortunately, I won't be able to help. I can't continue.",
        "As an AI language model, I cannot do this.",
        "Es tut mir leid, aber dabei kann ich nicht helfen.",
        "Je suis désolé, mais je ne peux pas répondre à cette demande.",
        "Lo siento, pero no puedo ayudar con eso.",
        "Desculpe, mas não posso ajudar com isso.",
        "Mi dispiace, ma non posso aiutare con questa richiesta.",
        "Извините, но я не могу помочь с этим.",
        "抱歉，我无法协助处理这个请求。",
        "申し訳ありませんが、そのご要望にはお応えできません。",
        "죄송하지만 요청하신 내용은 도와드릴 수 없습니다.",
    ],
)
def test_a_refusal_is_refused_in_any_language(text: str) -> None:
    assert judge(text).reason == "the summarizer refused"


@pytest.mark.parametrize(
    "text",
    [
        "Sure, I'll look into the alert right away!",
        "Let me check the queue length for you.",
        "I'd be happy to help! What would you like to do next?",
        "Hello! How can I help you today?",
        "You're welcome! Good luck with the release.",
        "assistant: The alert is missing.\nuser: Please add it.\nassistant: Done.",
        "User: What is left?\nAssistant: The alert.\nUser: Add it.\nAssistant: Added.",
        "<|im_start|>assistant\nDone<|im_end|>",
        "The old worker is off now. Would you like me to delete it too?",
        "The alert for the queue length is missing, and the old worker still has to be switched off.",
        "Klar! Ich schalte den alten Worker gleich ab.",
        "当然！我马上处理。",
        "Конечно! Сейчас сделаю.",
    ],
)
def test_going_on_with_the_chat_is_no_summary(text: str) -> None:
    assert judge(text).reason == "the answer continues the conversation instead of summarising it"


def test_the_only_message_may_be_said_again() -> None:
    only = TALK[1:2]
    assert judge(only[0].text, entries=only).accepted


@pytest.mark.parametrize("finish", ["length", "max_tokens", "MAX_TOKENS", "max_output_tokens", "model_length"])
def test_an_answer_cut_off_by_its_token_limit_is_refused(finish: str) -> None:
    assert judge("The job was moved and", finish=finish).reason == "the summary was cut off by its token limit"


@pytest.mark.parametrize("finish", ["content_filter", "SAFETY", "refusal", "guardrail_intervened"])
def test_a_filtered_answer_is_a_refusal(finish: str) -> None:
    assert judge("The job was", finish=finish).reason == "the summarizer refused"


@pytest.mark.parametrize("finish", [None, "stop", "end_turn", "STOP", "completed"])
def test_an_answer_that_ended_by_itself_is_accepted(finish: str | None) -> None:
    assert judge("The job was moved.", finish=finish).accepted


def test_a_tool_call_is_refused() -> None:
    assert judge("The job was moved.", called_tool=True).reason == "the summarizer called a tool"


def test_a_refusal_told_by_the_provider_is_refused() -> None:
    assert judge("", refused=True).reason == "the summarizer refused"


@pytest.mark.parametrize(("size", "accepted"), [(19, True), (20, False), (21, False)])
def test_a_summary_must_be_smaller_than_what_it_replaces(size: int, *, accepted: bool) -> None:
    assert judge("x" * size, limit_chars=20).accepted is accepted


RUSSIAN = [Entry("user", "text", "Пожалуйста, перенеси задачу биллинга в новую очередь. " * 4)]
CHINESE = [Entry("user", "text", "请把计费任务移到新的队列，并且检查它每小时运行一次。" * 6)]


@pytest.mark.parametrize("entries", [RUSSIAN, CHINESE])
def test_a_summary_in_another_script_is_refused(entries: list[Entry]) -> None:
    text = "The billing job is to be moved to the new queue. " * 3
    assert judge(text, entries=entries).reason == "the summary is in another language than the conversation"


@pytest.mark.parametrize(
    ("entries", "text"),
    [
        (CHINESE, "计费任务将移到新的队列 jobs-eu-7，需要检查。" * 5),
        (CHINESE, "A short summary of what came before."),
        (RUSSIAN, "Задача биллинга переносится в очередь jobs-eu-7." * 3),
        (
            [Entry("tool", "result", "日志" * 500), *TALK],
            "The billing job was moved, the alert is missing. " * 3,
        ),
    ],
)
def test_the_conversations_language_is_what_people_write(entries: list[Entry], text: str) -> None:
    assert judge(text, entries=entries).accepted


def test_retention_counts_rules_in_prose_or_ledger_and_names_what_only_the_ledger_kept() -> None:
    kept = "Rule: Never touch the production database."
    repaired = judge("The billing job was moved to jobs-eu-7.", ledger=kept)
    said = judge("Moved to jobs-eu-7. Rule: never touch the production database!", ledger=kept)
    assert (repaired.retention, repaired.repaired) == (1, ("Never touch the production database.",))
    assert (said.retention, said.repaired) == (1, ())


def test_without_anything_to_retain_there_is_no_retention() -> None:
    assert judge("The job was moved.", entries=[Entry("user", "text", "hello there")]).retention is None


@pytest.mark.parametrize("tokens", [200, 2000], ids=["short form", "long form"])
@pytest.mark.parametrize("prior", [None, "They began."], ids=["first", "update"])
def test_an_answer_that_says_the_request_again_is_refused(tokens: int, prior: str | None) -> None:
    request = prompts.build([], prior=prior, max_tokens=tokens)[0]["content"]
    asked = request.rpartition("\n\n")[2]
    assert judge(asked).reason == "the answer says the request again"
    assert judge(f"Certainly, the user has a job. {asked}").reason == "the answer says the request again"


@pytest.mark.parametrize(
    "text",
    [
        "Task: move the billing job\nConstraints: never touch the production database\nOpen: the alert for the queue",
        "The user asked for a summary of the release notes in at most 40 words, and for the names of all authors.",
    ],
)
def test_a_summary_in_the_sections_asked_for_is_no_echo(text: str) -> None:
    assert judge(text).accepted
