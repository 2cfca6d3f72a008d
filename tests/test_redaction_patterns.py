from __future__ import annotations

import tomllib
from pathlib import Path

import pytest
from tests.effort import grows_linearly, repeated, times

import compacter
from compacter.redaction import redact_secrets

B32 = "ABCDEFGHJKLMNPQR"
LOWER = "abcdefghijklmnopqrstuvwxyz0123456789"


@pytest.mark.parametrize(
    ("secret", "label"),
    [
        ("sk-" + LOWER, "API key"),
        ("sk-ant-api03-" + LOWER, "API key"),
        ("sk-proj-" + LOWER, "API key"),
        ("sk_live_" + LOWER, "API key"),
        ("ghp_" + LOWER, "API key"),
        ("github_pat_" + LOWER, "API key"),
        ("glpat-" + LOWER, "API key"),
        ("xoxb-1234567890-" + LOWER, "API key"),
        ("AIza" + LOWER, "API key"),
        ("hf_" + LOWER, "API key"),
        ("gsk_" + LOWER, "API key"),
        ("npm_" + LOWER, "API key"),
        ("pypi-" + LOWER, "API key"),
        ("AKIA" + B32, "AWS key"),
        ("eyJhbGciOiJI.eyJzdWIiOiIx.c2lnbmF0dXJl", "token"),
        ("4111 1111 1111 1111", "card number"),
        ("5500-0000-0000-0004", "card number"),
        ("378282246310005", "card number"),
        ("ingrid.berg+test@mail.example.org", "e-mail"),
        ("jürgen@müller.example", "e-mail"),
        ("sk-" + "a1B2c3D4" * 3, "API key"),
        ("sk-svcacct-" + LOWER, "API key"),
        ("sk-or-v1-" + LOWER, "API key"),
        ("ABSK" + "aB3" * 20, "API key"),
        ("rk_live_" + LOWER, "API key"),
        ("glrt-" + LOWER, "API key"),
        ("xoxe.xoxp-1-" + LOWER, "API key"),
        ("1//0" + LOWER, "API key"),
        ("hvs." + LOWER, "API key"),
        ("dapi" + "0a1b2c3d" * 4, "API key"),
        ("AGE-SECRET-KEY-1" + B32 * 4, "API key"),
        ("ASIA" + B32, "AWS key"),
        ("4242.4242.4242.4242", "card number"),
        ("6011-1111-1111-1117", "card number"),
    ],
)
def test_a_secret_is_replaced_by_what_it_was(secret: str, label: str) -> None:
    assert redact_secrets(f"before {secret} after") == f"before [{label}] after"


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("password: hunter2-x", "password: [secret]"),
        ('{"api_key": "abc123def456"}', '{"api_key": "[secret]"}'),
        ("DB_PASSWORD=s3cr3t-value!", "DB_PASSWORD=[secret]"),
        (
            "export AWS_SECRET_ACCESS_KEY=wJalrXUtnFEMI/K7MDENG",
            ("export AWS_SECRET_ACCESS_KEY=[secret]"),
        ),
        ("the password is hunter2-x", "the password is [secret]"),
        ("Passwort: geheim-123", "Passwort: [secret]"),
        ("пароль: совсекретно1", "пароль: [secret]"),
        ("Authorization: Bearer abcdefghijklmnop", "Authorization: Bearer [token]"),
        ("curl -H 'Authorization: Basic dXNlcjpwYXNz'", "curl -H 'Authorization: Basic [token]'"),
        ("Authorization: AbCdEf123456GhIjKl", "Authorization: [token]"),
        ("Cookie: sid=8RimrTGNck1LtdQh; theme=dark", "Cookie: sid=[token]; theme=dark"),
        (
            "https://hooks.slack.com/services/T000/B000/aBcDeFgHiJkL",
            "https://hooks.slack.com/services/[token]",
        ),
        ("curl -u admin:hunter22 https://x.example", "curl -u admin:[password] https://x.example"),
        ('passphrase: "correct horse battery staple"', 'passphrase: "[secret]"'),
        (r"{\"api_key\": \"abc123def456\"}", r"{\"api_key\": \"[secret]\"}"),
        ("password: $ecret12!", "password: [secret]"),
        ("password: abc12", "password: [secret]"),
        ("密码：abc12345", "密码：[secret]"),
        ("パスワードはhunter22です", "パスワードは[secret]"),
        ("キーはsk-a1b2c3d4e5f6g7h8i9j0です", "キーは[API key]です"),
        ("カード4242424242424242です", "カード[card number]です"),
        ("postgres://app:p@ss@db.example/orders", "postgres://app:[password]@db.example/orders"),
        ("postgres://app:hunter2@db.example/orders", "postgres://app:[password]@db.example/orders"),
        ("redis://:hunter2@cache:6379/0", "redis://:[password]@cache:6379/0"),
        (
            "-----BEGIN RSA PRIVATE KEY-----\nMIIEow\nAAAA\n-----END RSA PRIVATE KEY-----\nend",
            "[private key]\nend",
        ),
        ("-----BEGIN OPENSSH PRIVATE KEY-----\nb3BlbnNz", "[private key]"),
        (
            "-----BEGIN PRIVATE KEY-----\\n" + "Ab3" * 40 + "\\n[cut] and so on",
            ("[private key]\\n[cut] and so on"),
        ),
    ],
)
def test_what_names_the_secret_stays(text: str, expected: str) -> None:
    assert redact_secrets(text) == expected


@pytest.mark.parametrize(
    "text",
    [
        "",
        "def test_password_is_checked() -> None:",
        "max_tokens=4096, token_count: 512",
        "order 4111111111111112 and part 1234 5678 9012 3456",
        "0000 0000 0000 0000",
        "2026-11-21 22:30:15 ticket 20261121223015",
        "see https://example.org:8080/path@v2 and @someone",
        "password: ${DB_PASSWORD}",
        "the api key is missing",
        "git commit 9f8e7d6c5b4a39281706f5e4d3c2b1a098765432",
        "sk-learn and risk-free are words",
        "secret: null, token: true",
        'self.api_key = os.environ["OPENAI_API_KEY"]',
        "token = tokenizer.encode(text)",
        "password=self.password",
        "new_password = old_password",
        "access_token: string;",
        'credentials: "include"',
        'api_key="YOUR_API_KEY"',
        "PASSWORD=$DB_PASSWORD",
        "PWD=/home/ada/project1",
        "max_token=128000",
        "compass: north-west, bypass=enabled",
        "the token is expired, the password is wrong!",
        "password: must be at least 8 characters",
        "git@github.com:ada/notes.git",
        '<div class="sk-fading-circle-container-item">',
        "id 123e4567-e89b-42d3-a456-426614174000, at 0x4242424242424242",
        "IMEI 490154203237518",
        "authorization: basic authentication is used",
    ],
)
def test_ordinary_text_is_left_alone(text: str) -> None:
    assert redact_secrets(text) == text


def test_redacting_twice_changes_nothing_more() -> None:
    text = (
        f"password: hunter2-x mail a@b.example key sk-{LOWER} postgres://u:pw12345@h/x "
        f"Bearer {LOWER}"
    )
    once = redact_secrets(text)
    assert "hunter2" not in once
    assert redact_secrets(once) == once


@pytest.mark.parametrize(
    "hostile",
    [
        "-----BEGIN PRIVATE KEY-----\n",
        "a" * 50,
        "eyJ" + "a" * 30 + ".",
        "password",
        "1 ",
        "x@",
        "a.",
        "http://a:",
        "sk-",
        "auth=(",
        "auth=('a', '",
        "seed phrase: ",
        "mnemonic is abc ",
        "password for a ",
        "password is set to ",
        "PASSWORD FOR a = '",
        " -u a -p",
        "redis-cli ",
        "ENV A_TOKEN ",
        "name='token' value='",
        "define('a_token', '",
        "token: |\n ",
        "password&quot;",
        '"name": "password", "value": "',
        '"value": "abcd", "name": "',
        '"password": {"value": "',
        '"password": ["abcd", ',
        'password: "\\\\"',
        "Cookie: a=12345678; ",
    ],
)
def test_time_grows_linearly_on_hostile_text(hostile: str) -> None:
    assert grows_linearly(redact_secrets, repeated(hostile), times(4_000, long=10_000))


TABLE = tomllib.loads(
    (Path(compacter.__file__).parent / "secrets.toml").read_text(encoding="utf-8")
)


@pytest.mark.parametrize("row", [*TABLE["key"], *TABLE["secret"]], ids=str)
def test_the_sample_of_a_row_is_redacted(row: dict[str, str]) -> None:
    kind = row.get("kind", "API key")
    assert f"[{kind}]" in redact_secrets(row["sample"])


MIXED = "aB3dE5fG7hJ9kL1mN3pQ5rS7tU9vW1xY" * 4
HEX = "0a1b2c3d4e5f60718293a4b5c6d7e8f9" * 4
UPPER = "AB3DE5FG7HJ9KL1MN3PQ5RS7TU9VW1XY" * 4
GITLEAKS = {
    "1Password": "A3-AB3DE5-" + UPPER[:11] + "-" + UPPER[:5] + "-" + UPPER[:5] + "-" + UPPER[:5],
    "Adobe": "p8e-" + HEX[:32],
    "age": "AGE-SECRET-KEY-1" + UPPER[:58],
    "Alibaba": "LTAI" + MIXED[:20],
    "Anthropic": "sk-ant-api03-" + MIXED[:93] + "AA",
    "Atlassian": "ATATT3" + MIXED[:80],
    "Clojars": "CLOJARS_" + MIXED[:60],
    "Databricks": "dapi" + HEX[:32],
    "DigitalOcean": "dop_v1_" + HEX[:64],
    "Doppler": "dp.pt." + MIXED[:43],
    "Duffel": "duffel_test_" + MIXED[:43],
    "Dynatrace": "dt0c01." + UPPER[:24] + "." + UPPER[:64],
    "EasyPost": "EZAK" + MIXED[:54],
    "Fly": "fo1_" + MIXED[:43],
    "Frame.io": "fio-u-" + MIXED[:64],
    "GitHub": "ghp_" + MIXED[:36],
    "GitHub, fine-grained": "github_pat_" + MIXED[:82],
    "GitLab": "glpat-" + MIXED[:20],
    "Google": "AIza" + MIXED[:35],
    "Grafana": "glsa_" + MIXED[:32] + "_" + HEX[:8],
    "Grafana Cloud": "glc_" + MIXED[:60],
    "Harness": "pat." + MIXED[:22] + "." + HEX[:24] + "." + MIXED[:20],
    "Heroku": "HRKU-AA" + MIXED[:58],
    "Hugging Face": "hf_" + MIXED[:34],
    "Infracost": "ico-" + MIXED[:32],
    "Linear": "lin_api_" + MIXED[:40],
    "Lob": "live_" + HEX[:35],
    "Mailchimp": HEX[:32] + "-us20",
    "Mailgun": "key-" + HEX[:32],
    "Mapbox": "pk." + HEX[:60] + "." + HEX[:22],
    "New Relic": "NRAK-" + UPPER[:27],
    "Notion": "ntn_" + "1" * 11 + MIXED[:35],
    "npm": "npm_" + MIXED[:36],
    "NuGet": "oy2" + HEX[:43],
    "Octopus": "API-" + UPPER[:26],
    "OpenAI": "sk-proj-" + MIXED[:74] + "T3BlbkFJ" + MIXED[:74],
    "OpenShift": "sha256~" + MIXED[:43],
    "Perplexity": "pplx-" + MIXED[:48],
    "PlanetScale": "pscale_tkn_" + MIXED[:43],
    "Postman": "PMAK-" + HEX[:24] + "-" + HEX[:34],
    "Prefect": "pnu_" + HEX[:36],
    "Pulumi": "pul-" + HEX[:40],
    "PyPI": "pypi-AgEIcHlwaS5vcmc" + MIXED[:60],
    "ReadMe": "rdme_" + HEX[:70],
    "RubyGems": "rubygems_" + HEX[:48],
    "Scalingo": "tk-us-" + MIXED[:48],
    "Sendgrid": "SG." + MIXED[:66] + "." + MIXED[:20],
    "Sendinblue": "xkeysib-" + HEX[:64] + "-" + MIXED[:16],
    "Sentry": "sntrys_" + MIXED[:60],
    "SettleMint": "sm_pat_" + MIXED[:16],
    "Shippo": "shippo_live_" + HEX[:40],
    "Shopify": "shpat_" + HEX[:32],
    "Slack": "xoxb-1234567890-1234567890-" + MIXED[:24],
    "Sourcegraph": "sgp_" + HEX[:40],
    "Square": "sq0atp-" + MIXED[:22],
    "Stripe": "sk_live_" + MIXED[:24],
    "Telegram": "12345678:AA" + MIXED[:32],
    "Twilio": "SK" + HEX[:32],
    "Typeform": "tfp_" + MIXED[:59],
    "Vault": "hvs." + MIXED[:90],
    "Yandex": "AQVN" + MIXED[:37],
}
"""A made-up key for the rules of gitleaks that go by a prefix."""


@pytest.mark.parametrize("issuer", GITLEAKS)
def test_what_gitleaks_knows_by_its_prefix_is_an_api_key(issuer: str) -> None:
    key = GITLEAKS[issuer]

    assert redact_secrets(f"use {key} here") == "use [API key] here"
    assert key not in redact_secrets(f"prefix_{key}")
