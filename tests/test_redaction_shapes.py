"""What the ready-made patterns take out, and what they must leave: made-up secrets and their
look-alikes.
"""

from __future__ import annotations

import json
from collections.abc import Callable

import pytest

from compacter.redaction import Redaction, decode_escapes, redact_secrets

HEX = "0a1b2c3d4e5f60718293a4b5c6d7e8f9"
MIX = "aB3dE5fG7hJ9kL1mN3pQ5rS7tU9vW1xY"
LOW = "ab3de5fg7hj9kl1mn3pq5rs7tu9vw1xy"
UP = "AB3DE5FG7HJ9KL1MN3PQ5RS7TU9VW1XY"

KEYS = [
    *(
        f"{prefix}{MIX}"
        for prefix in ("sk-", "sk-ant-api03-", "sk-proj-", "sk-or-v1-", "sk-svcacct-", "sk_live_")
    ),
    *(
        f"{prefix}{MIX}"
        for prefix in ("rk_live_", "pk_test_", "whsec_", "ghp_", "gho_", "ghs_", "github_pat_")
    ),
    *(
        f"{prefix}{MIX}"
        for prefix in ("glpat-", "glrt-", "gldt-", "xoxb-1234567890-", "xoxp-12-34-", "xapp-1-A1-")
    ),
    *(
        f"{prefix}{MIX}"
        for prefix in ("AIza", "ya29.", "GOCSPX-", "1//0", "hf_", "gsk_", "r8_", "npm_", "tfp_")
    ),
    *(
        f"{prefix}{MIX}"
        for prefix in (
            "rubygems_",
            "rdme_",
            "pnu_",
            "dckr_pat_",
            "sntrys_",
            "sqp_",
            "glsa_",
            "vercel_",
        )
    ),
    *(
        f"{prefix}{MIX}"
        for prefix in (
            "xai-",
            "pplx-",
            "nvapi-",
            "pypi-",
            "HRKU-",
            "xkeysib-",
            "CLOJARS_",
            "fio-u-",
        )
    ),
    *(
        f"{prefix}{MIX}"
        for prefix in ("tvly-", "jina_", "ATATT3", "NRAK-", "NRJS-", "LTAI", "sq0atp-", "lin_api_")
    ),
    *(
        f"{prefix}{MIX}"
        for prefix in ("ntn_", "hvs.", "hvb.", "dp.pt.", "fm2_", "figd_", "pscale_tkn_")
    ),
    f"dop_v1_{HEX}{HEX}",
    f"shpat_{HEX}",
    f"SG.{MIX[:22]}.{MIX}",
    f"key-{HEX}",
    f"EZAK{MIX}{MIX}",
    f"EAAA{MIX}{MIX}",
    f"secret_{MIX}{MIX}",
    f"dapi{HEX}",
    f"{MIX[:14]}.atlasv1.{MIX}{MIX}",
    f"AGE-SECRET-KEY-1{UP}{UP}",
    f"PMAK-{HEX[:24]}-{HEX}",
    f"SK{HEX}",
    f"dt0c01.{UP[:24]}.{UP}{UP}",
    f"oy2{LOW}{LOW[:11]}",
    f"{HEX}-us12",
    f"shippo_live_{HEX}{HEX[:8]}",
    f"abc8Q~{MIX}",
    f"MTk4NjIyNDgzNDcxOTI1MjQ4.Cl2FMQ.{MIX}",
    f"1234567890:AA{MIX}",
    f"{MIX}-{MIX[:10]}=",
]
OTHERS = [
    ("AKIA" + UP[:16], "AWS key"),
    ("ASIA" + UP[:16], "AWS key"),
    ("eyJhbGciOiJI.eyJzdWIiOiIx.c2lnbmF0dXJl", "token"),
    ("4111 1111 1111 1111", "card number"),
    ("378282246310005", "card number"),
    ("DE89 3704 0044 0532 0130 00", "IBAN"),
    ("GB82WEST12345698765432", "IBAN"),
    ("FR14 2004 1010 0505 0001 3M02 606", "IBAN"),
    ("ingrid.berg+test@mail.example.org", "e-mail"),
    ("jürgen@müller.example", "e-mail"),
]
LABELLED = [
    ("<password>hunter22</password>", "hunter22"),
    ("<db:password enc='no'>Sommer-24</db:password>", "Sommer-24"),
    ("<api-key>abc123def</api-key>", "abc123def"),
    ("mysql -u root -phunter22 shop", "hunter22"),
    ("mysqldump --single -h db -p'hunter22' shop", "hunter22"),
    ("mysqldump --password hunTer22xY shop", "hunTer22xY"),
    ("Das Passwort ist: hunTer22xY", "hunTer22xY"),
    ("CREATE USER bob IDENTIFIED BY 'hunTer22xY'", "hunTer22xY"),
    ("pw: hunTer22xY", "hunTer22xY"),
    ("hasło: hunTer22xY", "hunTer22xY"),
    ("OTP 482913", "482913"),
    ("sshpass -p hunter22 ssh ada@host", "hunter22"),
    ("psql --password hunter22 shop", "hunter22"),
    ("tool --api-key abc123def456 run", "abc123def456"),
    ("tool --token=abc123def456", "abc123def456"),
    ("docker login -u ada --password S3cretly", "S3cretly"),
    ("machine git.example login ada password hunter22", "hunter22"),
    ("Cookie: theme=dark; sid=8RimrTGNck1LtdQh; csrf=Kx82hsk2Jq", "Kx82hsk2Jq"),
    ("Set-Cookie: sid=8RimrTGNck1LtdQh; Path=/; HttpOnly", "8RimrTGNck1LtdQh"),
    ("https://x.blob.example/f?sv=2024&sig=Zm9vYmFyYmF6cXV4MTIz%3D", "Zm9vYmFyYmF6cXV4MTIz"),
    (f"https://s3.example/f?X-Amz-Signature={HEX}{HEX}", HEX),
    (f"Authorization: SSWS 00{MIX}", MIX),
    ("Authorization: Bearer abcdefghijklmnop", "abcdefghijklmnop"),
    ("curl -H 'Authorization: Basic dXNlcjpwYXNz'", "dXNlcjpwYXNz"),
    ("curl -u admin:hunter22 https://x.example", "hunter22"),
    (f"FERNET_KEY={MIX}_{MIX[:10]}=", MIX),
    ("client-key-data: LS0tLS1CRUdJTiBSU0EgUFJJVkFURSBLRVk", "LS0tLS1CRUdJTi"),
    ('{"auths": {"r.example": {"auth": "YWRhOmh1bnRlcjIy"}}}', "YWRhOmh1bnRlcjIy"),
    (f"private key: 0x{HEX}{HEX}", HEX),
    (f"The private key is {HEX}{HEX}.", HEX),
    ("AccountKey=Zm9vYmFyYmF6cXV4MTIzNDU2Nzg5MA==;EndpointSuffix=x", "Zm9vYmFyYmF6"),
    ("Das Passwort lautet Sömmer24!", "Sömmer24"),
    ("Passwort: geheim-123", "geheim-123"),
    ("Le mot de passe est Été2024", "Été2024"),
    ("mot de passe\u00a0: « hunter22 »", "hunter22"),
    ("clé d'API : abc123def456", "abc123def456"),
    ("La contraseña es Verano2024", "Verano2024"),
    ("A senha é Verao2024", "Verao2024"),
    ("пароль: совсекретно1", "совсекретно1"),
    ("密码：abc12345", "abc12345"),
    ("密码是abc12345", "abc12345"),
    ("パスワードはhunter22です", "hunter22"),
    ("비밀번호: hunter22", "hunter22"),
    ("Your PIN: 4021", "4021"),
    ("CVV = 931", "931"),
    ("Your one-time code is 482 913.", "482 913"),
    ("The verification code is: 482913", "482913"),
    ("Ihr Einmalcode lautet 482913", "482913"),
    ("code de vérification : 482913", "482913"),
    ("您的验证码是482913", "482913"),
    ("인증번호: 482913", "482913"),
    ("DB_PASSWORD=s3cr3t-value!", "s3cr3t-value"),
    ("export AWS_SECRET_ACCESS_KEY=wJalrXUtnFEMI/K7MDENG", "wJalrXUtnFEMI"),
    ('{"client_secret": "abc123def456"}', "abc123def456"),
    (r"{\"api_key\": \"abc123def456\"}", "abc123def456"),
    ('passphrase: "correct horse battery staple"', "horse battery"),
    ("postgres://app:p@ss@db.example/orders", "p@ss"),
    ("redis://:hunter22@cache:6379/0", "hunter22"),
    ("https://hooks.slack.com/services/T000/B000/aBcDeFgHiJkL", "aBcDeFgHiJkL"),
    ("-----BEGIN RSA PRIVATE KEY-----\nMIIEow\nAAAA\n-----END RSA PRIVATE KEY-----", "MIIEow"),
]
LEFT = [
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
    f"sha256:{HEX}{HEX}",
    f"md5 {HEX}",
    "sha256-47DEQpj8HBSaTImW5JCeuQeRkm5NMpJWZG3hSuFUxyz=",
    'integrity="sha512-oqVuAfXRKap7fdgcCY5uykM6/R9GqQ8K"',
    "id 123e4567-e89b-42d3-a456-426614174000, at 0x4242424242424242",
    "trace 00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01",
    f"0x{HEX}{HEX}"[:42],
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
]


def test_there_are_at_least_120_of_each() -> None:
    assert len(KEYS) + len(OTHERS) + len(LABELLED) >= 120
    assert len(set(LEFT)) == len(LEFT) >= 120


def test_a_key_is_taken_out_by_its_shape() -> None:
    kept = [
        key for key in KEYS if redact_secrets(f"before {key} after") != "before [API key] after"
    ]
    assert kept == []


@pytest.mark.parametrize("frame", ["密钥{}在此", '{{"k": "{}"}}', "({})", "x={};", "`{}`"])
def test_a_key_is_taken_out_whatever_stands_beside_it(frame: str) -> None:
    assert [key for key in KEYS[::6] if key in redact_secrets(frame.format(key))] == []


def test_a_shape_is_replaced_by_what_it_was() -> None:
    redacted = [redact_secrets(f"before {secret} after") for secret, _ in OTHERS]
    assert redacted == [f"before [{label}] after" for _, label in OTHERS]


def test_a_labelled_secret_is_taken_out_and_its_label_stays() -> None:
    for text, secret in LABELLED:
        redacted = redact_secrets(text)
        assert secret not in redacted
        assert "[" in redacted
        assert redact_secrets(redacted) == redacted


def test_a_look_alike_stays() -> None:
    assert [redact_secrets(text) for text in LEFT] == list(LEFT)


def test_json_escapes_hide_nothing() -> None:
    for text, secret in LABELLED:
        escaped = "".join(
            f"\\u{ord(letter):04x}" if letter.isalpha() and ord(letter) < 0x10000 else letter
            for letter in text
        )
        assert secret not in redact_secrets(decode_escapes(escaped)), text


@pytest.mark.parametrize(
    "value", ["密码", "münchen", "😀", 'a"b', "a\\b", "a\nb", "\ud800", "plain"]
)
def test_decoded_json_is_the_same_json(value: str) -> None:
    text = json.dumps({value: [value]})
    assert json.loads(decode_escapes(text)) == {value: [value]}


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


@pytest.mark.parametrize(
    ("text", "left"),
    [
        ("Password=zQJjOIfPkzSr;", "Password=[secret];"),
        ("| ada | password | tr4lala99 |", "| ada | password | [secret] |"),
        ("card 4242, CVV 123", "card 4242, CVV [code]"),
        ("CVC 9876", "CVC [code]"),
    ],
)
def test_a_secret_of_letters_in_a_table_or_behind_its_label_is_taken_out(
    text: str, left: str
) -> None:
    assert redact_secrets(text) == left


@pytest.mark.parametrize(
    "text",
    [
        "password=userPassword",
        "password = getUserPassword",
        "| password | text |",
        "| token | string |",
    ],
)
def test_names_and_types_stay(text: str) -> None:
    assert redact_secrets(text) == text


LETTERS = [
    ("DB_PASSWORD=hunterseven", "hunterseven"),
    ("export API_KEY=abcdefghij", "abcdefghij"),
    ("SECRET_KEY=QwErTzUiOp", "QwErTzUiOp"),
    ("GITHUB_TOKEN=abcdefghijklmnop", "abcdefghijklmnop"),
    ("db:\n  password: sommerabend\n  port: 1", "sommerabend"),
    ("password hunter22", "hunter22"),
    ('{"api_key": "kdjfhgkdjfghqwer"}', "kdjfhgkdjfghqwer"),
    ('{"access_token":"abcdefghijklmnopqrst"}', "abcdefghijklmnopqrst"),
    ("api_key='kdjfhgkdjfgh'", "kdjfhgkdjfgh"),
    ("Bearer abcdefghijklmnopqrst", "abcdefghijklmnopqrst"),
    ('"Bearer abcdefghij"', "abcdefghij"),
    ("Authorization: Bearer abcdefgh", "abcdefgh"),
    ("sbp_" + "a1b2" * 10, "a1b2a1b2"),
    ("private key 0x" + "ab12" * 16, "ab12ab12"),
    (r'{"body": "{\"auth\": \"YWRhOmh1bnRlcjIy\"}"}', "YWRhOmh1bnRlcjIy"),
]


@pytest.mark.parametrize(("text", "secret"), LETTERS, ids=range(len(LETTERS)))
def test_a_secret_of_letters_or_without_a_colon_is_taken_out(text: str, secret: str) -> None:
    assert secret not in redact_secrets(text)


@pytest.mark.parametrize(
    "text",
    [
        "the password is required",
        "the password is incorrect",
        "Password is case-sensitive.",
        "the password is usually short",
        "the token is the first part",
        "token: identifier",
        "token: number;",
        "api_key: str",
        "api_key=api_key",
        "def f(api_key=None, token=default_token)",
        '{"token": "hello"}',
        '{"credentials": "same-origin"}',
        "    --- PASS: TestQuery/single_word_is_a_prefix (0.00s)",
        'grep -E "PASS|FAIL|ok " | head',
        "session_token: sessionid",
        "TOKEN=$(cat token.txt)",
        "Bearer token authentication is used",
    ],
)
def test_words_beside_a_label_stay(text: str) -> None:
    assert redact_secrets(text) == text


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
