"""The built-in patterns of secrets: what they hide, and what they leave alone. All are made up."""

from __future__ import annotations

import json
import tomllib
from collections.abc import Callable
from pathlib import Path

import pytest
from tests.effort import grows_linearly, repeated, times

import compacter
from compacter.redaction import Redaction, decode_escapes, redact_secrets

TABLE = tomllib.loads(
    (Path(compacter.__file__).parent / "secrets.toml").read_text(encoding="utf-8")
)
MIX = "aB3dE5fG7hJ9kL1mN3pQ5rS7tU9vW1xY"
UP = MIX.upper()
LOW = "abcdefghijklmnopqrstuvwxyz0123456789"
HEX = "0a1b2c3d4e5f60718293a4b5c6d7e8f9"

# -- keys by their form ----------------------------------------------------------------------------

PREFIXES = """
sk- sk-ant-api03- sk-proj- sk-or-v1- sk-svcacct- sk_live_ rk_live_ pk_test_ whsec_ ghp_ gho_ ghs_
github_pat_ glpat- glrt- gldt- xoxb-1234567890- xoxp-12-34- xapp-1-A1- xoxe.xoxp-1- AIza ya29.
GOCSPX- 1//0 hf_ gsk_ r8_ npm_ tfp_ rubygems_ rdme_ pnu_ dckr_pat_ sntrys_ sqp_ glsa_ vercel_ xai-
pplx- nvapi- pypi- HRKU- xkeysib- CLOJARS_ fio-u- tvly- jina_ ATATT3 NRAK- NRJS- LTAI sq0atp-
lin_api_ ntn_ hvs. hvb. dp.pt. fm2_ figd_ pscale_tkn_ glc_ sgp_ ico- fo1_ABCDEFGHIJK
"""
"""Beginnings of keys by which issuers say that they can be recognised."""
KEYS = [
    *(prefix + MIX for prefix in PREFIXES.split()),
    *(f"dop_v1_{HEX}{HEX}", f"shpat_{HEX}", f"SG.{MIX[:22]}.{MIX}", f"key-{HEX}", f"dapi{HEX}"),
    *(f"EZAK{MIX}{MIX}", f"EAAA{MIX}{MIX}", f"secret_{MIX}{MIX}", f"{MIX[:14]}.atlasv1.{MIX}{MIX}"),
    *(f"AGE-SECRET-KEY-1{UP}{UP}", f"PMAK-{HEX[:24]}-{HEX}", f"SK{HEX}", f"ABSK{MIX}{MIX}"),
    *(f"dt0c01.{UP[:24]}.{UP}{UP}", f"oy2{LOW}{LOW[:7]}", f"{HEX}-us12", f"abc8Q~{MIX}"),
    *(
        f"shippo_live_{HEX}{HEX[:8]}",
        f"MTk4NjIyNDgzNDcxOTI1MjQ4.Cl2FMQ.{MIX}",
        f"sk-{'a1B2c3D4' * 3}",
    ),
    *(f"1234567890:AA{MIX}", f"A3-AB3DE5-{UP[:11]}-{UP[:5]}-{UP[:5]}-{UP[:5]}", f"p8e-{HEX}"),
    *(f"duffel_test_{MIX}{MIX[:11]}", f"live_{HEX}abc", f"pk.{HEX}{HEX[:28]}.{HEX[:22]}"),
    *(f"pat.{MIX[:22]}.{HEX[:24]}.{MIX[:20]}", f"API-{UP[:26]}", f"sha256~{MIX}{MIX[:11]}"),
    *(f"tk-us-{MIX}{MIX[:16]}", f"sm_pat_{MIX[:16]}", f"AQVN{MIX}{MIX[:5]}"),
    f"{MIX}-{MIX[:10]}=",
]
OTHERS = [
    ("AKIA" + UP[:16], "AWS key"),
    ("ASIA" + UP[:16], "AWS key"),
    ("eyJhbGciOiJI.eyJzdWIiOiIx.c2lnbmF0dXJl", "token"),
    ("4111 1111 1111 1111", "card number"),
    ("5500-0000-0000-0004", "card number"),
    ("4242.4242.4242.4242", "card number"),
    ("6011-1111-1111-1117", "card number"),
    ("378282246310005", "card number"),
    ("DE89 3704 0044 0532 0130 00", "IBAN"),
    ("GB82WEST12345698765432", "IBAN"),
    ("FR14 2004 1010 0505 0001 3M02 606", "IBAN"),
    ("ingrid.berg+test@mail.example.org", "e-mail"),
    ("jürgen@müller.example", "e-mail"),
]


def test_a_key_is_replaced_by_its_kind() -> None:
    """A key with a form of its own is hidden, and so is it without blanks around it."""
    for secret, kind in [*((key, "API key") for key in KEYS), *OTHERS]:
        assert redact_secrets(f"before {secret} after") == f"before [{kind}] after"
    for frame in ("密钥{}在此", '{{"k": "{}"}}', "({})", "x={};", "`{}`"):
        assert [key for key in KEYS[::6] if key in redact_secrets(frame.format(key))] == []


@pytest.mark.parametrize("row", [*TABLE["key"], *TABLE["secret"]], ids=str)
def test_the_sample_of_a_row_is_hidden(row: dict[str, str]) -> None:
    """Each row of ``secrets.toml`` hides its own sample."""
    assert f"[{row.get('kind', 'API key')}]" in redact_secrets(row["sample"])


# -- secrets by what stands beside them ------------------------------------------------------------

SECRETS = [
    ("<password>hunter22</password>", "hunter22"),
    ("<db:password enc='no'>Sommer-24</db:password>", "Sommer-24"),
    ("mysql -u root -phunter22 shop", "hunter22"),
    ("mysqldump --single -h db -p'hunter22' shop", "hunter22"),
    ("CREATE USER bob IDENTIFIED BY 'hunTer22xY'", "hunTer22xY"),
    ("OTP 482913", "482913"),
    ("sshpass -p hunter22 ssh ada@host", "hunter22"),
    ("tool --api-key abc123def456 run", "abc123def456"),
    ("docker login -u ada --password S3cretly", "S3cretly"),
    ("machine git.example login ada password hunter22", "hunter22"),
    ("Cookie: theme=dark; sid=8RimrTGNck1LtdQh; csrf=Kx82hsk2Jq", "Kx82hsk2Jq"),
    ("Set-Cookie: sid=8RimrTGNck1LtdQh; Path=/; HttpOnly", "8RimrTGNck1LtdQh"),
    ("https://x.blob.example/f?sv=2024&sig=Zm9vYmFyYmF6cXV4MTIz%3D", "Zm9vYmFyYmF6cXV4"),
    ("Authorization: SSWS 00aB3dE5fG7hJ9kL1mN3pQ5rS7tU9vW1xY", "aB3dE5fG7hJ9kL1m"),
    ("FERNET_KEY=aB3dE5fG7hJ9kL1mN3pQ5rS7tU9vW1xY_aB3dE5fG7h=", "aB3dE5fG7hJ9kL1m"),
    ("client-key-data: LS0tLS1CRUdJTiBSU0EgUFJJVkFURSBLRVk", "LS0tLS1CRUdJTi"),
    ('{"auths": {"r.example": {"auth": "YWRhOmh1bnRlcjIy"}}}', "YWRhOmh1bnRlcjIy"),
    ("AccountKey=Zm9vYmFyYmF6cXV4MTIzNDU2Nzg5MA==;EndpointSuffix=x", "Zm9vYmFyYmF6"),
    ("Das Passwort lautet Sömmer24!", "Sömmer24"),
    ("Das Passwort lautet Sonnenblume.", "Sonnenblume"),
    ("Le mot de passe est Été2024", "Été2024"),
    ("mot de passe\xa0: « hunter22 »", "hunter22"),
    ("clé d'API : abc123def456", "abc123def456"),
    ("La contraseña es Verano2024", "Verano2024"),
    ("A senha é Verao2024", "Verao2024"),
    ("密码是abc12345", "abc12345"),
    ("Your PIN: 4021", "4021"),
    ("Your one-time code is 482 913.", "482 913"),
    ("Ihr Einmalcode lautet 482913", "482913"),
    ("code de vérification : 482913", "482913"),
    ("您的验证码是482913", "482913"),
    ("인증번호: 482913", "482913"),
    ('{"client_secret": "abc123def456"}', "abc123def456"),
    ('{\\"api_key\\": \\"abc123def456\\"}', "abc123def456"),
    ("DB_PASSWORD=hunterseven", "hunterseven"),
    ("db:\n  password: sommerabend\n  port: 1", "sommerabend"),
    ("password hunter22", "hunter22"),
    ('{"api_key": "kdjfhgkdjfghqwer"}', "kdjfhgkdjfghqwer"),
    ("api_key='kdjfhgkdjfgh'", "kdjfhgkdjfgh"),
    ("Bearer abcdefghijklmnopqrst", "abcdefghijklmnop"),
    ('"Bearer abcdefghij"', "abcdefghij"),
    ("sbp_a1b2a1b2a1b2a1b2a1b2a1b2a1b2a1b2a1b2a1b2", "a1b2a1b2"),
    ('{"body": "{\\"auth\\": \\"YWRhOmh1bnRlcjIy\\"}"}', "YWRhOmh1bnRlcjIy"),
    ("export SMTP_PASS='velvet-harbor'", "velvet-harbor"),
    ('{"user":"ada","password":"letmein"}', "letmein"),
    ("password for staging: gentlebreeze", "gentlebreeze"),
    ("login: ada / password: kittens", "kittens"),
    ('-H "Authorization: Bearer mysessionvalue"', "mysessionvalue"),
    ("sb_secret_AbCdEfGhIjKlMnOpQrSt_uv", "sb_secret_AbCd"),
    ('{"http":{"auth":{"user":"ada","pass":"bluewhale"}}}', "bluewhale"),
    ("mycli --password sunflower login", "sunflower"),
    ('password = "sunflower"', "sunflower"),
    ("const apiKey = 'sunflowerfieldsun';", "sunflowerfieldsu"),
    ("Server=x;User Id=sa;Password=tangerinetree;", "tangerinetree"),
    ("https://x.example/cb?access_token=abcdefghijklmnopqrstuvwx", "abcdefghijklmnop"),
    ("https://x.example/?password=tangerine&x=1", "tangerine"),
    ('<property name="password" value="lemonade"/>', "lemonade"),
    ("**Password:** lemonade", "lemonade"),
    ("| password | Lemonade77 |", "Lemonade77"),
    ("пароль: подсолнух", "подсолнух"),
    ("sk-abcdefghijklmnopqrstuvwxyzabcdefghijklmnopqrstuv", "sk-abcdefghijklm"),
    ("ALTER USER ada WITH PASSWORD 'lemonade';", "lemonade"),
    ('{"cmd": "export DB_PASSWORD=lemonade\\nls"}', "lemonade"),
    ("Password:\nlemonade77", "lemonade77"),
    ('{"env": [{"name": "DB_PASSWORD", "value": "lemonadestand"}]}', "lemonade"),
    ('[{"value": "lemonadestand", "name": "client_secret"}]', "lemonade"),
]


def test_a_secret_beside_a_label_is_hidden_and_once_is_enough() -> None:
    """A secret is hidden by its label, escaped or not; a second pass changes nothing."""
    redact = Redaction(redact_secrets)
    for text, secret in SECRETS:
        clean = redact(text)
        assert secret not in clean, text
        assert "[" in clean
        assert redact(clean) == clean
        if "\\" in text:
            continue
        escaped = "".join(
            f"\\u{ord(letter):04x}" if letter.isalpha() and ord(letter) < 0x10000 else letter
            for letter in text
        )
        assert secret not in redact(escaped), text


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
    """The label stays, and a second pass changes nothing."""
    assert redact_secrets(text) == expected
    assert redact_secrets(expected) == expected


SPELLED = """
password passwd passphrase passcode pass pwd pw hasło contraseña mot-de-passe passwort kennwort
wachtwoord senha code-secret clave-secreta пароль 密码 密碼 口令 パスワード 暗証番号 비밀번호 secret
client_secret consumer-secret app_secret shared_secret secret_access_key credential credentials
webhook_url webhookurl apikey api_key access-key auth_key account_key private_key signing_key
encryption_key fernet_key master_key seed_key license_key ssh_key client-key-data token access_token
auth_token refresh_token bearer_token session_token
id_token bot_token seed-phrase clé-secrète clé-privée clé-d'api clé-api api-schlüssel apischlüssel
geheimschlüssel clave-privada clave-de-api chave-secreta chave-privada 密钥 密鑰 シークレットキー
"""
LABELS = SPELLED.split()
SPACED = {
    "mot-de-passe",
    "code-secret",
    "seed-phrase",
    *(one for one in LABELS if one.startswith(("clé", "clave", "chave"))),
}


@pytest.mark.parametrize("change", [str, str.upper, str.title])
def test_a_value_under_any_label_is_taken_out(change: Callable[[str], str]) -> None:
    labels = [
        change(label.replace("-", " ") if label in SPACED else label) for label in sorted(LABELS)
    ]
    redacted = [redact_secrets(f"{label}: tr4lala-lu99") for label in labels]
    assert redacted == [f"{label}: [secret]" for label in labels]


# -- what is left alone ----------------------------------------------------------------------------

LOOK_ALIKES = [
    "def login(user: str, password: str) -> Session:",
    "def check(password: SecretStr = Field(...)) -> None:",
    "def test_password_is_checked() -> None:",
    "password: str | None = None",
    "password: Optional[str]",
    "const password: string = props.password;",
    "password=self.password",
    "new_password = old_password",
    "password: ${DB_PASSWORD}",
    "PASSWORD=$DB_PASSWORD",
    "password: <your password>",
    "password: ********",
    "password: xxxxxxxx",
    "the password is wrong, the token is expired!",
    "password: must be at least 8 characters",
    "Passwort: bitte neu setzen",
    "le mot de passe est expiré",
    "the api key is missing",
    "api_key = os.environ['API_KEY']",
    'self.api_key = os.environ["OPENAI_API_KEY"]',
    'api_key="YOUR_API_KEY"',
    "token = tokenizer.encode(text)",
    "max_tokens=4096, token_count: 512",
    "max_token=128000",
    "tokens: 1,204 in, 88 out",
    "access_token: string;",
    "secret: null, token: true",
    'credentials: "include"',
    "PWD=/home/ada/project1",
    "compass: north-west, bypass=enabled",
    "pass: 12 fail: 0",
    "<password></password>",
    '<input type="password" name="password">',
    '<label for="password">Password</label>',
    "<token>${TOKEN}</token>",
    "mysql -u root -p shop",
    "mysql -P 3306 -h db.example",
    "psql -p 5432 -U ada",
    "ssh -p 2222 ada",
    "docker run -p 8080:80 nginx",
    "mkdir -p src/app",
    "tool --token $TOKEN run",
    "tool --password-file /run/secrets/db",
    "tool --api-key ${API_KEY}",
    "login page password field",
    "cookie: a small text",
    "the cookie banner; path=/home",
    "Set-Cookie: theme=light; Path=/; Max-Age=3600",
    "see https://example.org/path?page=2&sort=name",
    "see https://example.org:8080/path@v2 and @someone",
    "https://example.org/callback?code=short",
    "?key=value&other=thing",
    "http://user@host/path",
    "git@github.com:ada/notes.git",
    "authorization: basic authentication is used",
    "the bearer of good news",
    "Bearer token authentication",
    "sk-learn and risk-free are words",
    '<div class="sk-fading-circle-container-item">',
    "ghp_ is the prefix of GitHub's tokens",
    "npm_config_registry and npm_lifecycle_event_name",
    "pypi-attestations is a package",
    "hf_hub_download_with_progress_bar",
    "xai-explainability-in-practice",
    "key-value-store-with-a-long-name",
    "secret_santa_list_of_the_whole_office",
    "pat_of_butter",
    "fw_update_check",
    "SK is Slovakia",
    "AIzawl is a city",
    "AKIA is the prefix of keys",
    "eyJ begins each of them",
    "SG.example",
    "git commit 9f8e7d6c5b4a39281706f5e4d3c2b1a098765432",
    "sha256:0a1b2c3d4e5f60718293a4b5c6d7e8f90a1b2c3d4e5f60718293a4b5c6d7e8f9",
    "md5 0a1b2c3d4e5f60718293a4b5c6d7e8f9",
    "sha256-47DEQpj8HBSaTImW5JCeuQeRkm5NMpJWZG3hSuFUxyz=",
    'integrity="sha512-oqVuAfXRKap7fdgcCY5uykM6/R9GqQ8K"',
    "id 123e4567-e89b-42d3-a456-426614174000, at 0x4242424242424242",
    "trace 00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01",
    "0x0a1b2c3d4e5f60718293a4b5c6d7e8f90a1b2c3d",
    "etag: W/686897696a7c876b7e",
    "order 4111111111111112 and part 1234 5678 9012 3456",
    "0000 0000 0000 0000",
    "IMEI 490154203237518",
    "2026-11-21 22:30:15 ticket 20261121223015",
    "phone +49 30 901820, fax +49 30 901821",
    "ISBN 978-3-16-148410-0",
    "DE89 3704 0044 0532 0130 01",
    "IT60 is not an account",
    "AB12 CD34 EF56",
    "VIN WVWZZZ1JZXW000001",
    "pin 13 of the board is high",
    "GPIO pin: 13",
    "PIN code required",
    "the code is 42",
    "error code: 500123",
    "exit code is 137",
    "status code = 404",
    "postal code: 10115",
    "verification code sent",
    "OTP is not supported",
    "the CVV field is empty",
    "area code 030",
    "invoice 482913 is due",
    "room 4021, floor 4",
    "@property and @staticmethod",
    "x@y",
    "user@localhost",
    "scale 2x@3x",
    "import pkg@latest",
    "1.2.3-beta.4@sha",
    "-----BEGIN CERTIFICATE-----\nMIIB\n-----END CERTIFICATE-----",
    "-----BEGIN PUBLIC KEY-----\nMIIB\n-----END PUBLIC KEY-----",
    "private key algorithms are compared",
    "public_key: ed25519",
    "keyboard: qwerty12",
    "monkey: banana77",
    "primary_key=True",
    "foreign key = customer_id",
    "key: value",
    "sort_key = lambda row: row[0]",
    "密码错误，请重试",
    "パスワードを忘れた方",
    "пароль неверный",
    "password=userPassword",
    "| password | text |",
    "Password is case-sensitive.",
    "token: identifier",
    "api_key: str",
    "def f(api_key=None, token=default_token)",
    '{"credentials": "same-origin"}',
    "    --- PASS: TestQuery/single_word_is_a_prefix (0.00s)",
    "TOKEN=$(cat token.txt)",
]


def test_a_look_alike_stays() -> None:
    """Code, prose, references, ids and placeholders are not secrets."""
    redact = Redaction(redact_secrets)
    assert [redact(text) for text in LOOK_ALIKES] == LOOK_ALIKES


# -- escapes, and time -----------------------------------------------------------------------------


@pytest.mark.parametrize(
    "value", ["密码", "münchen", "😀", 'a"b', "a\\b", "a\nb", "\ud800", "plain"]
)
def test_decoded_json_is_the_same_json(value: str) -> None:
    text = json.dumps({value: [value]})
    assert json.loads(decode_escapes(text)) == {value: [value]}


KEY = "sk-proj-" + "Ab3dEf6hIj9k" * 3


@pytest.mark.parametrize(
    ("text", "secret"),
    [
        (json.dumps({"text": f"as follows:\n{KEY}"}), KEY),
        (json.dumps({"text": f"\t{KEY}"}), KEY),
        (json.dumps({"body": json.dumps({"text": f"\n{KEY}"})}), KEY),
        (json.dumps({"a": json.dumps({"b": json.dumps({"c": f"\n{KEY}"})})}), KEY),
        (json.dumps({"password": 'hunt"er22'}), "er22"),
        (json.dumps({"n": 1}) + "\n" + json.dumps({"text": f"\r{KEY}"}), KEY),
        (json.dumps({f"\n{KEY}": 1}), KEY),
        (r"print('\n" + KEY + "')", KEY),
        (f"\x1b[31m{KEY}\x1b[0m", KEY),
        (json.dumps({"text": f"\x1b[31m{KEY}"}), KEY),
    ],
)
def test_what_is_behind_an_escape_sequence_is_taken_out(text: str, secret: str) -> None:
    clean = Redaction(redact_secrets)(text)
    assert secret not in clean
    if text.startswith("{") and "}\n{" not in text:
        json.loads(clean)


@pytest.mark.parametrize(
    "text",
    [
        r"C:\new\table",
        r'{"path": "C:\\new", "n": "a\"b\nc"}',
        "\x1b[31mred\x1b[0m",
        "{not json\\n}",
    ],
)
def test_escapes_without_a_secret_stay_as_they_are(text: str) -> None:
    assert Redaction(redact_secrets)(text) == text


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
