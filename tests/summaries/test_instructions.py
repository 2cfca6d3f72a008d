from __future__ import annotations

import pytest

from compacter.messages.parts import Entry
from compacter.summaries import instructions

RULES = [
    "Never push to the main branch without my approval.",
    "Always answer in British English.",
    "Don't change files under vendor/.",
    "Please do not use any external services.",
    "You must keep the public API unchanged.",
    "The budget is $400 in total.",
    "Spend at most 30 minutes on this.",
    "Deadline: 14 March 2027.",
    "From now on, write commit messages in the imperative.",
    "IMPORTANT: only touch the tests.",
    "I prefer tabs over spaces.",
    "All times must be given in UTC.",
    "Make sure every function has a docstring.",
    "No more than five dependencies.",
    "Schreibe niemals direkt in die Datenbank.",
    "Antworte immer auf Deutsch.",
    "Das Budget beträgt höchstens 500 Euro.",
    "N'utilise jamais de bibliothèque externe.",
    "Réponds toujours en français.",
    "No borres nunca los registros antiguos.",
    "Responde siempre en español.",
    "Nunca envie e-mails sem a minha aprovação.",
    "Non modificare mai i file di configurazione.",
    "Gebruik altijd de testdatabase.",
    "Никогда не удаляй таблицу клиентов.",
    "Отвечай всегда на русском языке.",
    "Nigdy nie usuwaj kopii zapasowych.",
    "不要修改生产环境的配置。",
    "预算不超过五千元。",
    "必ず日本語で答えてください。",
    "本番環境には絶対に触らないでください。",
    "절대 운영 데이터베이스를 수정하지 마세요.",
    "لا تستخدم أي خدمة خارجية.",
    "הקפד תמיד לענות בעברית.",
    "हमेशा हिंदी में उत्तर दो।",
    "ห้ามลบข้อมูลลูกค้า",
    "Không bao giờ xóa bản sao lưu.",
    "Üretim veritabanına asla dokunma.",
    "Use pnpm instead of npm.",
    "Stay below 200 ms latency.",
    "No emojis.",
    "Nothing may leave the EU region.",
    "Answer in one sentence.",
    "My allergies are peanuts and shellfish.",
    "Ich möchte, dass du mich duzt.",
    "El presupuesto es de 900 euros.",
    "Rispondi solo in italiano.",
    "Бюджет — 5000 рублей.",
    "请用中文回答。",
    "予算は5万円です。",
    "존댓말로 답해 주세요.",
]


@pytest.mark.parametrize("sentence", RULES)
def test_a_standing_instruction_is_recognised(sentence: str) -> None:
    assert instructions.score(sentence) >= instructions.LIKELY


@pytest.mark.parametrize(
    "sentence",
    [
        "I went to the market yesterday.",
        "What must I do to renew the passport?",
        "The tests pass now.",
        "Can you fix the parser in src/app.py?",
        "We had a great time at the lake.",
        "It must have been awesome to be there.",
        "Wow, that must've been great!",
        "No problem.",
        "We moved to the USA in May.",
        "Ich war gestern im Kino.",
        "Elle habite à Lyon depuis dix ans.",
        "Мы вчера были в театре.",
        "昨天我去了图书馆。",
        "ok",
        "",
    ],
)
def test_what_is_merely_told_or_asked_is_none(sentence: str) -> None:
    assert instructions.score(sentence) < instructions.LIKELY


@pytest.mark.parametrize("sentence", RULES)
def test_a_rule_is_found_word_for_word_inside_a_longer_message(sentence: str) -> None:
    message = f"Here is the log of the last run. It failed after two hours.\n{sentence}\nThanks, Jo"
    assert sentence in [text for text, _ in instructions.find([Entry("user", "text", message)])]


@pytest.mark.parametrize(
    "entry",
    [
        Entry("tool", "result", RULES[0]),
        Entry("assistant", "text", RULES[0]),
        Entry("system", "text", RULES[0]),
        Entry("assistant", "call", RULES[0], "note"),
        Entry("user", "summary", RULES[0]),
        Entry("user", "media", RULES[0]),
    ],
)
def test_only_the_users_own_words_can_be_a_rule(entry: Entry) -> None:
    assert list(instructions.find([entry])) == []


def test_rules_that_follow_one_another_stay_together() -> None:
    text = "The budget is $400. Never exceed it without asking me."
    assert [rule for rule, _ in instructions.find([Entry("user", "text", text)])] == [text]
