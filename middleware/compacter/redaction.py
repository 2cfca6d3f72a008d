"""Built-in patterns of secrets: keys, tokens, passwords, payment cards, e-mail addresses.

A secret is recognised by its form (a prefix that its issuer documents), by the label before it, or by a check digit.
It is replaced by its kind. Word boundaries are those of ASCII, as Chinese and Japanese have no space before a key.
Every pattern begins with a literal or cannot start twice within one word, and every repetition is bounded, so the time
is linear in the text.

The issuers' prefixes were compared with the rules of gitleaks and detect-secrets:
https://github.com/gitleaks/gitleaks/blob/master/config/gitleaks.toml
https://github.com/Yelp/detect-secrets/tree/master/detect_secrets/plugins
"""

from __future__ import annotations

import re
from collections.abc import Callable

_Replace = str | Callable[[re.Match[str]], str]

_ESCAPE = re.compile(r"\\u([dD][89abAB][0-9a-fA-F]{2})\\u([dD][c-fC-F][0-9a-fA-F]{2})|\\u([0-9a-fA-F]{4})")


def decode_escapes(text: str) -> str:
    r"""Return ``text`` with JSON's ``\uXXXX`` escapes decoded, except quotes, backslashes and control characters.

    JSON stays valid. Apply it before ``redact_secrets``: an escaped label or key does not match any pattern.
    """
    return _ESCAPE.sub(_decoded, text) if "\\u" in text else text


def _decoded(match: re.Match[str]) -> str:
    high, low, single = match.groups()
    code = int(single, 16) if single else 0x10000 + ((int(high, 16) - 0xD800) << 10) + int(low, 16) - 0xDC00
    return match[0] if code < 0x20 or code in (0x22, 0x5C) or 0xD800 <= code < 0xE000 else chr(code)


# Forms of secrets: a fixed prefix, then the secret part.
_SHAPES = (
    r"sk-(?:ant|proj|or|svcacct|admin|None)-[\w-]{16,}|[sp]k-lf-[a-f0-9-]{32,}|sk-(?=[A-Za-z]{0,200}\d)[A-Za-z0-9]{16,}",
    r"ABSK[A-Za-z0-9+/=]{40,}|(?:sk|rk|pk)_(?:live|test|prod)_[A-Za-z0-9]{10,}|whsec_[A-Za-z0-9]{16,}",
    r"gh[pousr]_[A-Za-z0-9]{20,}|github_pat_\w{20,}|gl(?:pat|dt|rt|cbt|ptt|soat|ft|imt|agent|oas)-[\w-]{16,}|GR1348941[\w-]{20}",
    r"xox[abeoprs][.-][A-Za-z0-9.-]{10,}|xapp-[A-Za-z0-9-]{10,}",  # Slack
    r"AIza[\w-]{30,}|ya29\.[\w-]{16,}|GOCSPX-[\w-]{16,}|1//0[\w-]{30,}",  # Google
    r"(?:hf|gsk|fw|r8|npm|tfp|rubygems|rdme|pnu|dckr_pat|sntry[su]|sq[aup]|sgp|pul|ghr|nfp|pat|vercel|glc|glsa)_(?=[A-Za-z_]{0,200}\d)\w{20,}",
    r"(?:xai|pplx|nvapi|pypi|HRKU|xkeysib|CLOJARS|fio-u|ico|pul|rnd|tvly|jina)[-_](?=[A-Za-z_-]{0,200}\d)[\w=-]{20,}",
    r"(?:ATATT3|NRJS-|NRII-|NRAK-|LTAI)(?=[A-Za-z_-]{0,200}\d)[\w=-]{16,}",
    r"do[opr]_v1_[a-f0-9]{32,}|shp(?:at|ca|pa|ss)_[a-fA-F0-9]{20,}|SG\.[\w-]{12,}\.[\w-]{12,}|key-[a-f0-9]{32}",
    r"sq0(?:atp|csp|idp)-[\w-]{20,}|EAAA[A-Za-z0-9_-]{56,}|EZ[AT]K[A-Za-z0-9]{50,}|lin_api_[A-Za-z0-9]{20,}|ntn_\w{20,}",
    r"secret_[A-Za-z0-9]{40,}|hv[sb]\.[\w-]{20,}|dapi[a-f0-9]{32}|dp\.(?:pt|st|ct|sa|scim|audit)\.[A-Za-z0-9]{30,}",
    r"fm[12]_[A-Za-z0-9+/=]{30,}|[A-Za-z0-9]{14}\.atlasv1\.[\w-]{40,}|AGE-SECRET-KEY-1[A-Z0-9]{50,}|figd_[\w-]{30,}",
    r"PMAK-[a-f0-9-]{40,}|SK[a-f0-9]{32}\b|dt0[a-z]\d\d\.[A-Z0-9]{24}\.[A-Z0-9]{60,}|oy2[a-z0-9]{43}|[a-f0-9]{32}-us\d{1,2}\b",
    r"pscale_(?:tkn|pw|oauth)_[\w.-]{30,}|shippo_(?:live|test)_[a-f0-9]{40}|duffel_(?:live|test)_[\w=-]{40,}",
    r"v2\.local\.[\w-]{40,}|p8e-[a-z0-9]{32}|ops_eyJ[A-Za-z0-9+/=]{40,}|A3-[A-Z0-9]{6}-(?:[A-Z0-9]{5,11}-?){3,6}",
    r"[A-Za-z0-9_~.]{3}\dQ~[A-Za-z0-9_~.-]{30,}",  # Microsoft Entra
    r"[MNO][\w-]{23,27}\.[\w-]{6}\.[\w-]{27,40}|\d{8,10}:AA[\w-]{30,}",  # Discord, Telegram
    r"(?<!sha256-)(?=[\w-]{0,42}[A-Z])(?=[\w-]{0,42}[a-z])(?=[\w-]{0,42}\d)[\w-]{43}=(?![\w=])",  # Fernet
)
_ISSUERS = re.compile(
    r"4\d{15}(?:\d{3})?|5[0-8]\d{14}|2[2-7]\d{14}|3[47]\d{13}|3(?:0[0-5]|[689]\d)\d{11}|35\d{14}|6\d{15,18}"
)
"""Prefixes and lengths of the card networks (ISO/IEC 7812), as a valid check digit alone is no proof of a card."""

# Labels before a value.
_PASSWORDS = (
    r"pass(?:word|wd|phrase|code)|(?<![a-z])pass|pwd|(?<![a-z])pw|identified by|hasło|contraseña|"
    r"mots? de passe|passwort|kennwort|wachtwoord|senha|code secret|clave secreta|"
    r"пароль|密码|密碼|口令|パスワード|暗証番号|비밀번호"
)
_KEYS = (
    r"(?:client|consumer|app|shared)?[ _-]?secret(?:[ _-]?(?:access[ _-]?)?key)?|credentials?|webhook[_-]?url|apikey|"
    r"(?:api|access|auth|account|private|signing|encryption|fernet|master|seed|license|ssh)[ _-]?key|client-key-data|"
    r"(?:access|auth|refresh|bearer|session|id|bot)?[_-]?token|seed phrase|clé (?:secrète|privée|d['’]api|api)|"
    r"api[- ]?schlüssel|geheimschlüssel|clave (?:privada|de api)|chave (?:secreta|privada)|密钥|密鑰|シークレットキー"
)
_LINK = r"(?:=>|:=|\||(?<=identified by)(?= )|[=:：]|\b(?:is|was|ist|war|lautet|est|es|é|è|wordt)\b|是|は|为|為|は、)"
_CODES = (
    r"\b(?:PIN|TAN|OTP|CVV2?|CVC2?|pin[ -]code|one[- ]time (?:code|password|passcode)|(?:verification|security|login|"
    r"confirmation|authentication|access|2fa|mfa) code|einmal(?:code|passwort)|(?:bestätigungs|sicherheits)code|"
    r"code de (?:vérification|sécurité|confirmation)|código de (?:verificación|seguridad|verificação|segurança))\b|"
    r"код подтверждения|验证码|驗證碼|認証コード|確認コード|인증번호"
)
_PARTS = """
    pass pw identified hasło contraseña kennwort wachtwoord senha secret clave парол 密码 密碼 口令
    パスワード 暗証 비밀번호 credential webhook key token seed clé schlüssel chave 密钥 密鑰 シークレット
"""
_LABEL_PARTS = frozenset(_PARTS.split())
"""Parts of the labels above, in lower case, one in each; a text without any of them is not searched for labels."""
_LABEL_LETTERS = "[abcefghiklmprstvwп密口パ暗비シ]"
"""First letters of the labels, which a regular expression tests much faster than the labels themselves."""
_STRENGTH = re.compile(r"[\d\W_]")
_REFERENCE = re.compile(
    r"[A-Za-z_]\w{0,200}(?:(?:\.|->|::)[A-Za-z_]\w{0,200}){0,20}[\[(].*"  # a call, an index
    r"|[A-Za-z_]\w{0,200}(?:(?:\.|->|::)[A-Za-z_]\w{0,200}){1,20}|[^\W\d]+"  # an attribute, a name
    r"|\$(?:[A-Z_]+\b|[{(]).*|%[\w(].*|[<{\[/~].*|\.{2,}.*"  # a variable, a path
    r"|(?i:your)[-_ ].*|\*{3,}.*|x{4,}.*",  # a placeholder
    re.DOTALL,
)
"""A reference or placeholder, which is not a secret itself."""
_PLAIN_WORDS = """
    string number integer boolean object bytes varchar optional required password passwd secret token hidden text
    undefined missing include omit same-origin enabled disabled input field true false null none str int bool float any
    expired invalid valid wrong correct changed reset unknown empty redacted
"""
_NOT_SECRETS = frozenset(_PLAIN_WORDS.split())
_COOKIE_ATTRIBUTES = re.compile(r"(?i:path|expires|max-age|domain|samesite|priority|version|theme|lang|locale)\Z")


def _kept(label: str) -> Callable[[re.Match[str]], str]:
    return lambda match: f"{match['keep']}[{label}]{match.groupdict().get('after') or ''}"


def _card(match: re.Match[str]) -> str:
    digits = re.sub(r"\D", "", match[0])
    return "[card number]" if _ISSUERS.fullmatch(digits) and _luhn([*map(int, digits)]) else match[0]


def _luhn(digits: list[int]) -> bool:
    """Return whether the check digit of a payment card is valid (ISO/IEC 7812-1)."""
    doubled = [digit if place % 2 == 0 else digit * 2 - 9 * (digit > 4) for place, digit in enumerate(reversed(digits))]
    return sum(doubled) % 10 == 0 and len(set(digits)) > 1


def _iban(match: re.Match[str]) -> str:
    """Replace an account number with valid check digits (ISO 13616)."""
    plain = match[0].replace(" ", "")
    number = "".join(str(int(character, 36)) for character in plain[4:] + plain[:4])
    return "[IBAN]" if len(plain) >= 15 and int(number) % 97 == 1 else match[0]


def _cookies(match: re.Match[str]) -> str:
    def value(pair: re.Match[str]) -> str:
        return pair[0] if _COOKIE_ATTRIBUTES.match(pair["name"]) else f"{pair['name']}=[token]"

    return match["keep"] + re.sub(r"(?P<name>[^\s=;]{1,64})=[^\s;]{8,4096}", value, match["pairs"])


def _assigned(match: re.Match[str]) -> str:
    """Return the assignment without its value if that may be a secret, and not a name, a type or a count."""
    word = (match["quoted"] or match["bare"]).rstrip(".!?:)")
    if len(set(word)) > 1 and word.lower() not in _NOT_SECRETS and _looks_secret(match, word):
        return f"{match['keep']}[secret]"
    return match[0]


def _looks_secret(match: re.Match[str], word: str) -> bool:
    linked = match["linked"].strip()
    if linked == "|" or (linked.isascii() and linked.isalpha()):  # "The password is ..." may go on as a sentence.
        return bool(re.match(r"(?=\S{4})[^\W_]\S{0,500}?[\dA-Z]|[!#-.]\S{0,500}?[\dA-Z]", word))
    if match["quoted"]:
        name = word.isidentifier() and not match["password"] and not _STRENGTH.search(word)
        return not name and (
            (word.isidentifier() and not word.startswith("YOUR_")) or " " in word or not _REFERENCE.fullmatch(word)
        )
    if match["password"] and word.isalpha() and word.islower():
        return not re.match(r" [a-z]", match.string[match.end() : match.end() + 2])
    if _REFERENCE.fullmatch(word) and not (match["password"] and _random(word)):
        return False
    return bool(match["password"]) or (not word.isdigit() and bool(re.search(r"\d", word)))


def _random(word: str) -> bool:
    """Return whether letters change their case more often than in a camelCase name."""
    return word.isalpha() and len(word) >= 8 and len(word) < 2.5 * len(re.findall(r"[A-Z]+[a-z]*|[a-z]+", word))


def _flag(match: re.Match[str]) -> str:
    reference = _REFERENCE.fullmatch(match["value"]) and not match["value"].isalpha()
    return match[0] if reference else f"{match['keep']}[secret]"


def _pattern(text: str, flags: int = 0) -> re.Pattern[str]:
    return re.compile(text, re.ASCII | flags)


_USER = r"(?P<keep>://[^\s:/@'\"<>]{0,128}:)[^\s/'\"<>$\[][^\s/'\"<>]{0,255}(?P<after>@)"
"""User and password of a connection string: ``scheme://user:password@host``."""
_PATTERNS: tuple[tuple[re.Pattern[str], _Replace], ...] = (
    (
        re.compile(
            r"-----BEGIN (?P<kind>[A-Z0-9 ]{0,30}PRIVATE KEY(?: BLOCK)?)-----"
            r"(?:(?:(?!-----BEGIN )[\s\S]){1,16384}?-----END (?P=kind)-----"
            r"|(?:(?:\s|\\[rn]){1,8}[A-Za-z0-9+/=]{8,}){0,800})"  # Without its end.
        ),
        "[private key]",
    ),
    (_pattern(_USER), _kept("password")),
    (_pattern(r"\beyJ[\w-]{8,4096}\.[\w-]{8,65536}(?:\.[\w-]{0,4096})?"), "[token]"),
    (
        _pattern(
            r"(?P<keep>\b(?i:(?:proxy-)?authorization[\\\"']{0,3}\s{0,4}[:=]\s{0,4}[\\\"']{0,3}"
            r"(?:(?:basic|bearer|token|digest|apikey|bot|ssws|genie\w{0,8})\s{1,4})?))"
            r"(?=[^\s\"',;\\]{0,4096}[\dA-Z=]|[^\s\"',;\\]{16})[^\s\"',;\\\[]{8,4096}"
        ),
        _kept("token"),
    ),
    (_pattern(r"(?P<keep>\b(?i:bearer|ssws)\s{1,4})(?=[\w.~+/=-]{0,200}\d)[\w.~+/=-]{16,4096}"), _kept("token")),
    # AWS access key ids; the secret that belongs to one has no prefix and is found by its label below.
    (_pattern(r"\b(?:AKIA|ASIA|ABIA|ACCA|AGPA|AIDA|AROA|ANPA)[A-Z0-9]{16}\b"), "[AWS key]"),
    (_pattern(r"(?<![A-Za-z0-9])(?!--|\.\.)(?=[\w.:~+/=-]{20})(?:" + "|".join(_SHAPES) + ")"), "[API key]"),
    (
        _pattern(
            r"(?P<keep>\b(?:hooks\.slack\.com/(?:services|workflows)|discord(?:app)?\.com/api/webhooks/\d{5,25})/)[\w/-]{20,}"
        ),
        _kept("token"),
    ),
    (
        _pattern(
            r"(?P<keep>[?&;](?:sig|signature|x-amz-(?:signature|security-token|credential)|x-goog-signature|"
            r"(?:access_|auth_)?token|api_?key|key|code)=)(?=[^\s&\"'<>]{0,200}[\dA-Z%])[^\s&\"'<>\[]{16,4096}",
            re.IGNORECASE,
        ),
        _kept("token"),
    ),
    (_pattern(r"(?P<keep>\b(?:set-)?cookie[\"']?:\s{0,4})(?P<pairs>[^\r\n\"']{1,8192})", re.IGNORECASE), _cookies),
    (_pattern(r"(?P<keep>\"auth\"\s{0,4}:\s{0,4}\")[A-Za-z0-9+/=]{8,4096}(?P<after>\")"), _kept("password")),
    (
        _pattern(r"(?P<keep>\bcurl\s[^\n]{0,200}?(?:-u|--user)[ =][\"']?[^\s:\"']{1,64}:)[^\s\"'\[]{3,256}"),
        _kept("password"),
    ),
    (
        _pattern(
            r"(?P<keep>\b(?:mysql(?:dump|admin)?|mariadb|sshpass(?= -p))\s"
            r"(?:[^\n]{0,200}?(?<![\w-])-p|(?<=sshpass )-p )['\"]?)"
            r"[^\s'\"\[$-][^\s'\"]{2,255}"
        ),
        _kept("password"),
    ),
    (
        _pattern(
            r"(?P<keep>\b(?:machine\s{1,8}\S{1,128}|default)\s{1,8}login\s{1,8}\S{1,128}\s{1,8}password\s{1,8})"
            r"(?!\[)\S{1,256}"
        ),
        _kept("password"),
    ),
    (
        _pattern(
            r"(?P<keep>--?(?:[a-z]{1,16}-){0,3}(?:password|passwd|pass|pwd|token|secret|api-?key|secret-key|access-key)"
            r"[ \t=]{1,4}[\"']?)(?P<value>[^\s\"'\[-][^\s\"']{3,512})",
            re.IGNORECASE,
        ),
        _flag,
    ),
    (
        re.compile(
            r"(?P<keep><(?:\w{1,32}:)?(?:\w{1,32}[_-])?(?:password|passwd|pwd|secret|token|api-?key|passphrase)"
            r"(?:\s[^<>]{0,200})?>\s{0,8})[^\s<>\[$][^<>]{0,512}(?P<after></)",
            re.IGNORECASE,
        ),
        _kept("secret"),
    ),
    (
        re.compile(
            rf"(?P<keep>(?={_LABEL_LETTERS})(?:(?P<password>{_PASSWORDS})|{_KEYS})"
            rf"[\\\"'`*]{{0,4}}\s{{0,4}}(?P<linked>{_LINK}):?\s{{0,4}}"
            r"(?:[\\`*]{0,2}(?P<quote>[\"'`«])\s?|[\\\"'`*]{0,4}))"
            r"(?!\[|\s)(?:(?(quote)(?P<quoted>[^\"'`»\n\\]{4,512})|(?!))|(?P<bare>[^\s\"'`,;}{\\]{4,512}))",
            re.IGNORECASE,
        ),
        _assigned,
    ),
    (
        re.compile(
            rf"(?P<keep>(?:{_CODES})[\"'*]{{0,3}}\s{{0,4}}(?:{_LINK}:?|(?<=OTP |CVV |CVC ))\s{{0,4}}"
            r"[\"'*]{0,3}(?:[A-Z]-)?)"
            r"\d[\d -]{1,8}\d(?!\d|[.,]\d)",
            re.IGNORECASE,
        ),
        _kept("code"),
    ),
    (_pattern(r"\b[A-Z]{2}\d{2}(?: ?[A-Z0-9]{4}){2,7}(?: ?[A-Z0-9]{1,3})?\b"), _iban),
    (_pattern(r"(?<![\w.-])(?:(?:\d[ -]?){12,18}\d|\d{4}(?:\.\d{4}){3})(?![\d.]?\d)"), _card),
    (
        re.compile(
            r"(?<![\w.+'-])(?!git@)[\w.+'-]{1,64}@(?:[^\W_](?:[\w-]{0,62})\.){1,8}[^\W\d_]{2,24}(?![A-Za-z0-9])"
        ),
        "[e-mail]",
    ),
)


def redact_secrets(text: str) -> str:
    """Return ``text`` with secrets and personal addresses replaced by their kind, in brackets.

    Covers private keys, passwords in connection strings, command lines, markup and assignments, one-time codes and PINs
    by their label, cookies, JWT and bearer tokens, signatures in URLs, API keys of well-known forms, AWS key ids,
    payment cards and IBANs (by check digit) and e-mail addresses. Phone numbers and names have no fixed form; your own
    function may redact them after calling this one. Applying it twice has no further effect.
    """
    folded = text.casefold()
    labelled = any(part in folded for part in _LABEL_PARTS)
    for pattern, replacement in _PATTERNS:
        if labelled or "password" not in pattern.groupindex:
            text = pattern.sub(replacement, text)
    return text
