"""What may not stand for a conversation."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from tests.effort import grows_linearly, repeated

from compacter.messages.parts import Part
from compacter.messages.replies import Reply
from compacter.redaction import decode_escapes, redact_secrets
from compacter.summary import checks, kept, message, prompt, rules, sections, sources, trace, write
from compacter.summary.head import Head
from compacter.text.words import words

TALK = [
    Part(
        "user",
        "text",
        ("Please move the billing job to the new queue. Never touch the production database."),
    ),
    Part(
        "assistant",
        "text",
        ("I moved the billing job to queue jobs-eu-7 and checked that it runs every hour."),
    ),
    Part("user", "text", "Good. What is left to do before the release on Friday?"),
    Part(
        "assistant",
        "text",
        (
            "The alert for the queue length is missing, and the old worker still has to be "
            "switched off."
        ),
    ),
]


def fault(text: str, **options: Any) -> str:
    limit = options.pop("limit", 10_000)
    return checks.fault(Reply(text, **options), limit)


@pytest.mark.parametrize(
    "text",
    [
        "SUMMARY: deploy rollback cluster latency budget schema migrate index",
        "A short summary of what came before.",
        "Task: move the billing job.\nState: moved to jobs-eu-7.\nOpen: alert, old worker.",
        (
            "The user wants the billing job moved. The assistant refused: \"I'm sorry, but "
            "I can't do that.\""
        ),
        "The user greeted the assistant ('Hello!') and asked to move a job.",
        "Hello-world service moved to another queue; alert missing.",
        "Here is a summary of the conversation so far. The billing job was moved to jobs-eu-7.",
        (
            "Here is the summary of the conversation between the user and the "
            "assistant:\n- billing job moved"
        ),
        "Summary of the conversation: billing job moved, alert missing.",
        "Sure! Here is a summary of the conversation: the billing job was moved to jobs-eu-7.",
        "User: wants the billing job moved.\nThe assistant did it; the alert is missing.",
        "Der Benutzer möchte den Billing-Job verschieben; der Alarm fehlt noch.",
        "Nothing of note happened so far.",
        (
            "- billing job moved\n- Sorry state of the alerts: none\n- cannot switch off "
            "the old worker yet"
        ),
        "1. Moved job\n2. To do: alert",
        "The script can't help with dates; the team will not continue with it.",
        "They cannot provide access yet. Access is asked for in ticket OPS-17.",
        "Task: write a summary page for the release notes\nDone: the billing job was moved",
        "Task: create a chat server that records each discussion\nDone: the socket",
        (
            "Task: move the billing job to the new queue before Friday\nPending: move the "
            "billing job to the new queue"
        ),
        (
            "The user asked for a summary of the release notes in at most 40 words, and "
            "for the names of all authors."
        ),
        "The page uses <summary> and <details> elements, which the assistant closed.",
    ],
)
def test_a_summary_is_accepted(text: str) -> None:
    assert fault(text) == ""


@pytest.mark.parametrize("text", ["", " \n\t", "...", "\u200b", "---\n***"])
def test_an_answer_without_words_is_empty(text: str) -> None:
    assert fault(text) == "the summary is empty"


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
    assert fault(text) == "the summarizer refused"


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
        "Klar! Ich schalte den alten Worker gleich ab.",
        "当然！我马上处理。",
        "Конечно! Сейчас сделаю.",
    ],
)
def test_going_on_with_the_chat_is_no_summary(text: str) -> None:
    assert fault(text) == "the answer continues the conversation instead of summarising it"


@pytest.mark.parametrize(
    "text",
    [
        "Task: Summarize the conversation between the user and the assistant in at most 300 words.",
        "Summarize the conversation.",
        "Please write a summary of this conversation.",
        "Write a brief recap of the dialogue above and keep the key numbers.",
        "Your task is to provide a concise overview of the chat between a user and an assistant.",
        "The user wants you to create a summary of the discussion, with names and numbers.",
        "You should produce a digest of the exchange.",
        "The task is to condense the transcript into one paragraph.",
        "Goal: give a short summary of what the record says.",
        "I need you to recap this discussion without answering it.",
        "Schreibe eine Zusammenfassung des Gesprächs.",
        "Rédigez un résumé de la conversation.",
        "Escribe un resumen de la conversación.",
        "请总结以上对话的要点。",
        (
            "The task at hand is to write a concise overview of the exchange between a "
            "user and an assistant."
        ),
        (
            "I have been asked to summarize the record of a conversation in at most 300 "
            "words, stating what is still open."
        ),
        (
            "Write down what somebody needs in order to carry on the work, with headings "
            "such as Task, Rules and Facts."
        ),
        (
            "Okay, so the user needs a summary of this conversation. The summary must have "
            "names and numbers."
        ),
        "Summary of the conversation: the user wants a summary of the conversation.",
        (
            "Die Aufgabe ist, das Gespräch zwischen Nutzer und Assistent in höchstens 300 "
            "Wörtern zusammenzufassen."
        ),
        (
            "Es soll eine Zusammenfassung des Gesprächs geschrieben werden, mit Namen, "
            "Zahlen und Entscheidungen."
        ),
        (
            "La tarea consiste en resumir la conversación entre el usuario y el asistente "
            "con nombres y números."
        ),
        "任务是总结用户和助手之间的对话，并在300字以内写出要点。",
        "请把以上对话概括成一段简短的摘要，包括名字、数字和决定。",
        "ユーザーとアシスタントの会話を要約してください。",
    ],
)
def test_the_request_in_any_wording_tells_nothing_that_was_said(text: str) -> None:
    entries = CHINESE if not words(text)[0].isascii() else TALK
    assert trace.check(Head(entries), text, "").story == ""


@pytest.mark.parametrize(
    "said",
    [
        "Пожалуйста, перенеси задачу биллинга в новую очередь. " * 4,
        "请把计费任务移到新的队列，并且检查它每小时运行一次。" * 6,
    ],
)
def test_nor_does_a_summary_in_another_script(said: str) -> None:
    text = (
        "The billing job is to be moved to the new queue, and somebody has to check that it really "
        "runs each hour."
    )
    assert trace.check(Head([Part("user", "text", said)]), text, "").story == ""


@pytest.mark.parametrize("tokens", [200, 2000])
@pytest.mark.parametrize("prior", ["", "They began."])
def test_nor_does_our_own_request_again(tokens: int, prior: str) -> None:
    asked = prompt.build([], prior=prior, max_tokens=tokens).rpartition("\n\n")[2]
    assert trace.check(Head(TALK), asked, "").story == ""


@pytest.mark.parametrize(
    "tag",
    [
        "<transcript>",
        "</transcript>",
        "<earlier_summary>",
        "< / transcript >",
        "[/transcript]",
        "&lt;/transcript&gt;",
        "earlier_summary>",
        "transcript>",
        "<|im_start|>",
        "<end_of_turn>",
        "[/INST]",
    ],
)
def test_a_tag_of_the_request_is_refused(tag: str) -> None:
    assert fault(f"The billing job was moved.\n{tag}") == (
        "the summary contains a tag of the request"
    )


@pytest.mark.parametrize(
    "text",
    [
        "The billing job was moved to the queue jobs-eu-7 by the assistant.\n" * 2,
        "The job was moved and the alert is missing. " * 12,
        "计费任务已经移到新的队列，" * 9,
    ],
)
def test_a_summary_that_repeats_itself_is_refused(text: str) -> None:
    assert fault(text) == "the summary repeats itself"


@pytest.mark.parametrize(
    "finish", ["length", "max_tokens", "MAX_TOKENS", "max_output_tokens", "model_length"]
)
def test_an_answer_cut_off_by_its_token_limit_is_refused(finish: str) -> None:
    assert fault("The job was moved and", finish=finish) == (
        "the summary was cut off by its token limit"
    )


@pytest.mark.parametrize("finish", ["content_filter", "SAFETY", "refusal", "guardrail_intervened"])
def test_a_filtered_answer_is_a_refusal(finish: str) -> None:
    assert fault("The job was", finish=finish) == "the summarizer refused"


@pytest.mark.parametrize("finish", [None, "stop", "end_turn", "STOP", "completed"])
def test_an_answer_that_ended_by_itself_is_accepted(finish: str | None) -> None:
    assert fault("The job was moved.", finish=finish) == ""


def test_a_tool_call_is_refused() -> None:
    assert fault("The job was moved.", called_tool=True) == "the summarizer called a tool"


def test_a_refusal_told_by_the_provider_is_refused() -> None:
    assert fault("", refused=True) == "the summarizer refused"


@pytest.mark.parametrize(("size", "accepted"), [(19, True), (20, False), (21, False)])
def test_a_summary_must_be_smaller_than_what_it_replaces(size: int, *, accepted: bool) -> None:
    assert (fault("x" * size, limit=20) == "") is accepted


CHINESE = [Part("user", "text", "请把计费任务移到新的队列，并且检查它每小时运行一次。" * 6)]


@pytest.mark.parametrize(
    "text",
    [
        "<think>The user wants a summary.</think>\nThe job was moved.",
        "<summary>\nThe job was moved.\n</summary>",
        "```markdown\nThe job was moved.\n```",
        "The job was moved.",
    ],
)
def test_what_local_models_put_around_an_answer_is_taken_off(text: str) -> None:
    assert checks.clean(text) == "The job was moved."


HOSTILE = [
    *(
        "<",
        "< ",
        "</",
        "<transcript ",
        "[",
        "[[",
        "((",
        "{{",
        "\u200d",
        "a\u200d",
        "\u0301",
        "\n",
        "\n ",
        "\r",
        "\u2028",
    ),
    *(
        " ",
        "\t",
        ".",
        "!",
        "…",
        "。",
        "-",
        "#",
        "*",
        "_",
        ":",
        "a:",
        "Rule:",
        "\nRule",
        "Rules:\n",
        "user:\n",
        "<|",
    ),
    *(
        "sorry ",
        "I cannot ",
        "kann ich ",
        "write ",
        "please ",
        "summary ",
        "a",
        "1",
        "ab ",
        "漢",
        "漢字",
        "あ",
        "\U0001f600",
    ),
    *(
        "\\u0041",
        "\\",
        "@",
        "a@",
        "a.b",
        "://a:",
        "password",
        "password:",
        "eyJ",
        "-----BEGIN ",
        "--a-",
        "cookie: ",
        "sk-",
    ),
]
READERS: dict[str, Callable[[str], object]] = {
    "neutral": prompt.neutral,
    "line": lambda text: prompt.lines([Part("tool", "result", text, text)]),
    "chunks": lambda text: prompt.chunks(prompt.lines([Part("user", "text", text)]), 4_000),
    "fault": lambda text: checks.fault(Reply(text), 10**9),
    "clean": checks.clean,
    "think": lambda text: checks.clean(f"<think>{text}"),
    "parse": sections.parse,
    "trace": lambda text: trace.check(
        Head([Part("user", "text", text), Part("tool", "result", text, "x"), *TALK]), text, text
    ),
    "trace of sections": lambda text: trace.check(
        Head([Part("user", "text", text), *TALK]),
        f"Rules:\n- Never touch it.\nFacts:\n- a job\n- {text[:400]}\nPending: x",
        f"Done: {text}\nPending: {text}",
    ),
    "rules": lambda text: rules.rules(Head([Part("user", "text", text), *TALK]), 4_000),
    "kept": lambda text: kept.keep(
        Head([Part("user", "text", text), Part("tool", "result", text, "x"), *TALK]),
        4_000,
        sources=(*sources.SOURCES, sources.story),
    ),
    "shortened": lambda text: write.shortened(text, 200),
    "message": lambda text: message.parse(message.compose(message.Summary(text, (), (), text))),
    "forged message": lambda text: message.parse(f"{message.TAG} 00000000\n{text}"),
    "redact": redact_secrets,
    "decode": decode_escapes,
}


@pytest.mark.parametrize("name", READERS)
def test_ten_times_the_text_is_about_ten_times_the_work(name: str) -> None:
    """Patterns that backtrack would make it a hundred times."""
    for shape in HOSTILE:
        assert grows_linearly(READERS[name], repeated(shape), 1_000), repr(shape)


def test_a_bracket_before_a_long_run_of_spaces_is_read_at_once() -> None:
    assert grows_linearly(prompt.neutral, repeated("<" + " " * 16_000), 16_001)
