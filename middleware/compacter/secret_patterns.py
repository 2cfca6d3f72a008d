"""Built-in patterns of secrets: keys, tokens, passwords, payment cards, e-mail addresses.

A secret is recognised by its form (a prefix that its issuer documents), by the label before it, or
by a check digit. It is replaced by its kind. Word boundaries are those of ASCII, as Chinese and
Japanese have no space before a key. Every pattern begins with a literal or cannot start twice
within one word, and every repetition is bounded, so the time is linear in the text.

The issuers' prefixes were compared with the rules of gitleaks and detect-secrets:
https://github.com/gitleaks/gitleaks/blob/master/config/gitleaks.toml
https://github.com/Yelp/detect-secrets/tree/master/detect_secrets/plugins
"""

from __future__ import annotations

import re
from collections.abc import Callable

from compacter.secret_labels import (
    BLOCK,
    CODES,
    KEYS,
    LABEL_LETTERS,
    LABEL_PARTS,
    LINK,
    PASSWORDS,
    REFERENCE,
    SUBJECT,
    is_about_a_label,
    replace_assigned,
)

_Replace = str | Callable[[re.Match[str]], str]

# Forms of secrets: a fixed prefix, then the secret part.
_SHAPES = (
    (
        r"sk-(?:ant|proj|or|svcacct|admin|None)-[\w-]{16,}|[sp]k-lf-[a-f0-9-]{32,}|"
        r"sk-(?=[A-Za-z]{0,200}\d)[A-Za-z0-9]{16,}|sk-[A-Za-z]{30,}(?![\w-])"
    ),
    (
        r"ABSK[A-Za-z0-9+/=]{40,}|(?:sk|rk|pk)_(?:live|test|prod)_[A-Za-z0-9]{10,}|"
        r"whsec_[A-Za-z0-9]{16,}"
    ),
    (
        r"gh[pousr]_[A-Za-z0-9]{20,}|github_pat_\w{20,}|gl(?:pat|dt|rt|cbt|ptt|soat|ft|"
        r"imt|agent|oas)-[\w-]{16,}|GR1348941[\w-]{20}"
    ),
    r"xox[abeoprs][.-][A-Za-z0-9.-]{10,}|xapp-[A-Za-z0-9-]{10,}",  # Slack
    r"AIza[\w-]{30,}|ya29\.[\w-]{16,}|GOCSPX-[\w-]{16,}|1//0[\w-]{30,}",  # Google
    (
        r"(?:hf|gsk|fw|r8|npm|tfp|rubygems|rdme|pnu|dckr_pat|sntry[su]|sq[aup]|sgp|pul|"
        r"ghr|nfp|pat|vercel|glc|glsa)_(?=[A-Za-z_]{0,200}\d)\w{20,}"
    ),
    # Hugging Face's have no digit at all; no word has that many letters.
    r"(?:hf|gsk|fw|r8|npm|tfp|sgp|pul|pat|vercel)_[A-Za-z]{30,}(?![\w-])",
    (
        r"(?:xai|pplx|nvapi|pypi|HRKU|xkeysib|CLOJARS|fio-u|ico|pul|rnd|tvly|"
        r"jina)[-_](?=[A-Za-z_-]{0,200}\d)[\w=-]{20,}"
    ),
    r"(?:ATATT3|NRJS-|NRII-|NRAK-|LTAI)(?=[A-Za-z_-]{0,200}\d)[\w=-]{16,}",
    (
        r"do[opr]_v1_[a-f0-9]{32,}|shp(?:at|ca|pa|ss)_[a-fA-F0-9]{20,}|"
        r"SG\.[\w-]{12,}\.[\w-]{12,}|key-[a-f0-9]{32}"
    ),
    (
        r"sq0(?:atp|csp|idp)-[\w-]{20,}|EAAA[A-Za-z0-9_-]{56,}|EZ[AT]K[A-Za-z0-9]{50,}|"
        r"lin_api_[A-Za-z0-9]{20,}|ntn_\w{20,}"
    ),
    (
        r"secret_[A-Za-z0-9]{40,}|hv[sb]\.[\w-]{20,}|dapi[a-f0-9]{32}|dp\.(?:pt|st|ct|"
        r"sa|scim|audit)\.[A-Za-z0-9]{30,}"
    ),
    (
        r"fm[12]_[A-Za-z0-9+/=]{30,}|[A-Za-z0-9]{14}\.atlasv1\.[\w-]{40,}|"
        r"AGE-SECRET-KEY-1[A-Z0-9]{50,}|figd_[\w-]{30,}"
    ),
    (
        r"PMAK-[a-f0-9-]{40,}|SK[a-f0-9]{32}\b|"
        r"dt0[a-z]\d\d\.[A-Z0-9]{24}\.[A-Z0-9]{60,}|oy2[a-z0-9]{43}|[a-f0-9]{32}-us\d{1,2}\b"
    ),
    (
        r"pscale_(?:tkn|pw|oauth)_[\w.-]{30,}|shippo_(?:live|test)_[a-f0-9]{40}|"
        r"duffel_(?:live|test)_[\w=-]{40,}"
    ),
    (
        r"v2\.local\.[\w-]{40,}|p8e-[a-z0-9]{32}|ops_eyJ[A-Za-z0-9+/=]{40,}|"
        r"A3-[A-Z0-9]{6}-(?:[A-Z0-9]{5,11}-?){3,6}"
    ),
    # Supabase, LangSmith, PostHog, E2B, Firecrawl, Resend, RunPod, Cerebras, Tailscale, Nostr, xprv
    r"sbp_[a-z0-9_]{20,}|sb_secret_[\w-]{16,}|lsv2_(?:pt|sk)_[a-z0-9_]{20,}",
    r"ph[xs]_[A-Za-z0-9]{20,}|e2b_[a-z0-9]{20,}|fc-[a-f0-9]{32}|re_[A-Za-z0-9]{8}_[A-Za-z0-9]{16,}",
    r"rpa_[A-Z0-9]{20,}|csk-[a-z0-9]{20,}|tskey-[a-z]{3,10}-\w[\w-]{14,}|nsec1[a-z0-9]{50,}",
    r"[xyz]prv[A-Za-z0-9]{100,}",
    r"[A-Za-z0-9_~.]{3}\dQ~[A-Za-z0-9_~.-]{30,}",  # Microsoft Entra
    r"[MNO][\w-]{23,27}\.[\w-]{6}\.[\w-]{27,40}|\d{8,10}:AA[\w-]{30,}",  # Discord, Telegram
    # Fernet
    r"(?<!sha256-)(?=[\w-]{0,42}[A-Z])(?=[\w-]{0,42}[a-z])(?=[\w-]{0,42}\d)[\w-]{43}=(?![\w=])",
)
# Prefixes and lengths of the card networks (ISO/IEC 7812), as a valid check digit alone is no proof
# of a card.
_ISSUERS = re.compile(
    r"4\d{15}(?:\d{3})?|5[0-8]\d{14}|2[2-7]\d{14}|3[47]\d{13}|3(?:0[0-5]|"
    r"[689]\d)\d{11}|35\d{14}|6\d{15,18}"
)


def _keep_label(label: str) -> Callable[[re.Match[str]], str]:
    return lambda match: f"{match['keep']}[{label}]{match.groupdict().get('after') or ''}"


def _card(match: re.Match[str]) -> str:
    digits = re.sub(r"\D", "", match[0])
    return (
        "[card number]" if _ISSUERS.fullmatch(digits) and _luhn([*map(int, digits)]) else match[0]
    )


def _luhn(digits: list[int]) -> bool:
    """Return whether the check digit of a payment card is valid (ISO/IEC 7812-1)."""
    doubled = [
        digit if place % 2 == 0 else digit * 2 - 9 * (digit > 4)
        for place, digit in enumerate(reversed(digits))
    ]
    return sum(doubled) % 10 == 0 and len(set(digits)) > 1


def _iban(match: re.Match[str]) -> str:
    """Replace an account number with valid check digits (ISO 13616)."""
    plain = match[0].replace(" ", "")
    number = "".join(str(int(character, 36)) for character in plain[4:] + plain[:4])
    return "[IBAN]" if len(plain) >= 15 and int(number) % 97 == 1 else match[0]


_COOKIE_ATTRIBUTES = re.compile(
    r"(?i:path|expires|max-age|domain|samesite|priority|version|theme|"
    r"lang|locale)\Z"
)


def _cookies(match: re.Match[str]) -> str:
    def value(pair: re.Match[str]) -> str:
        return pair[0] if _COOKIE_ATTRIBUTES.match(pair["name"]) else f"{pair['name']}=[token]"

    return match["keep"] + re.sub(r"(?P<name>[^\s=;]{1,64})=[^\s;]{8,4096}", value, match["pairs"])


def _value(match: re.Match[str]) -> str:
    """Replace a value that stands beside the name of a secret, unless it is a placeholder."""
    value = match["value"]
    is_reference = REFERENCE.fullmatch(value) is not None and not value.isalpha()
    return match[0] if is_reference or is_about_a_label(value) else _keep_label("secret")(match)


def _login(match: re.Match[str]) -> str:
    """Replace the password after ``-u user -p``; MySQL's ``-p`` asks, and a database follows."""
    line = match.string[match.string.rfind("\n", 0, match.start()) + 1 : match.start()]
    asks = re.search(r"\b(?:mysql|mariadb)", line[-_LONGEST_COMMAND:])
    return match[0] if asks else _keep_label("password")(match)


def _flag(match: re.Match[str]) -> str:
    reference = REFERENCE.fullmatch(match["value"]) and not match["value"].isalpha()
    return match[0] if reference else _keep_label("secret")(match)


def _pattern(text: str, flags: int = 0) -> re.Pattern[str]:
    return re.compile(text, re.ASCII | flags)


# Characters before an option in which the name of the command is looked for.
_LONGEST_COMMAND = 400
# User and password of a connection string: `scheme://user:password@host`.
_USER = r"(?P<keep>://[^\s:/@'\"<>]{0,128}:)[^\s/'\"<>$\[][^\s/'\"<>]{0,255}(?P<after>@)"
_PATTERNS: tuple[tuple[re.Pattern[str], _Replace], ...] = (
    (
        re.compile(
            r"-----BEGIN (?P<kind>[A-Z0-9 ]{0,30}PRIVATE KEY(?: BLOCK)?)-----"
            r"(?:(?:(?!-----BEGIN )[\s\S]){1,16384}?-----END (?P=kind)-----"
            r"|(?:(?:\s|\\[rn]){1,8}[A-Za-z0-9+/=]{8,}){0,800})"  # Without its end.
        ),
        "[private key]",
    ),
    (_pattern(_USER), _keep_label("password")),
    (_pattern(r"\beyJ[\w-]{8,4096}\.[\w-]{8,65536}(?:\.[\w-]{0,4096})?"), "[token]"),
    (
        _pattern(
            r"(?P<keep>\b(?i:(?:proxy-)?authorization[\\\"']{0,3}\s{0,4}[:=]\s{0,4}[\\\"']{0,3}"
            r"(?:(?:basic|bearer|token|digest|apikey|bot|ssws|genie\w{0,8})\s{1,4})?))"
            r"(?=[^\s\"',;\\]{0,4096}[\dA-Z=]|[^\s\"',;\\]{16}"
            r"|(?!(?i:auth|token|cred|realm|schem|key|header))[a-z]{8,15}(?:[\"'\\\r\n]|\Z))"
            r"(?!(?i:your|my|the)[_-]|[<${%])[^\s\"',;\\\[]{8,4096}"
        ),
        _keep_label("token"),
    ),
    (
        _pattern(
            r"(?P<keep>\b(?i:bearer|ssws)\s{1,4})"
            r"(?:(?=[\w.~+/=-]{0,200}\d)[\w.~+/=-]{16,4096}"
            # No English word after it is that long; or it ends a header in quotes.
            r"|[A-Za-z]{16,4096}(?![\w-])"
            r"|(?!(?i:auth|token|cred|realm|schem|key))[A-Za-z]{8,15}(?=[\"'\\])"
            r"|[a-z]{0,12}[bcdfghjklmnpqrstvwxz]{5}[a-z]{0,12}(?=`))"
        ),
        _keep_label("token"),
    ),
    (
        _pattern(
            r"(?P<keep>\b(?i:password|passwd|passcode)\s)"
            r"(?=[A-Za-z]\w{0,64}\d)(?!(?i:sha|md|v|utf|base|oauth|aes|rsa|http)\d)[\w!$%*.-]{7,64}"
            r"(?![\w([/:=])"
        ),
        _keep_label("secret"),
    ),
    # AWS access key ids; the secret that belongs to one has no prefix and is found by its label
    # below.
    (_pattern(r"\b(?:AKIA|ASIA|ABIA|ACCA|AGPA|AIDA|AROA|ANPA)[A-Z0-9]{16}\b"), "[AWS key]"),
    (
        _pattern(r"(?<![A-Za-z0-9])(?!--|\.\.)(?=[\w.:~+/=-]{20})(?:" + "|".join(_SHAPES) + ")"),
        "[API key]",
    ),
    (
        _pattern(
            r"(?P<keep>\b(?:hooks\.slack\.com/(?:services|workflows)|"
            r"discord(?:app)?\.com/api/webhooks/\d{5,25})/)[\w/-]{20,}"
        ),
        _keep_label("token"),
    ),
    (
        _pattern(
            r"(?P<keep>[?&;](?:sig|signature|x-amz-(?:signature|security-token|credential)|"
            r"x-goog-signature|"
            r"(?:access_|auth_)?token|api_?key|key|"
            r"code)=)(?=[^\s&\"'<>]{0,200}[\dA-Z%])[^\s&\"'<>\[]{16,4096}",
            re.IGNORECASE,
        ),
        _keep_label("token"),
    ),
    (
        _pattern(
            r"(?P<keep>\b(?:set-)?cookie[\"']?:\s{0,4})(?P<pairs>[^\r\n\"']{1,8192})", re.IGNORECASE
        ),
        _cookies,
    ),
    (
        _pattern(
            r"(?P<keep>\\{0,7}[\"']_?auth\\{0,7}[\"']\s{0,4}:\s{0,4}\\{0,7}[\"'])"
            r"(?!(?i:basic|bearer|digest|o?auth|api|jwt|saml|negotiate|none|anonymous))"
            r"(?:(?=[^\"'\\]{0,4096}[\dA-Z=:])[A-Za-z0-9+/=_:.-]{8,4096}|[a-z]{12,4096})"
            r"(?P<after>\\{0,7}[\"'])"
        ),
        _keep_label("password"),
    ),
    (
        # The same in npm's settings.
        _pattern(r"(?P<keep>(?<!\w)_auth\s{0,2}=\s{0,2}[\"']?)[A-Za-z0-9+/=]{8,4096}"),
        _keep_label("password"),
    ),
    (
        # The user and the password as a pair: auth=("ada", "...").
        _pattern(
            r"(?P<keep>\bauth[\\\"']{0,9}\s{0,4}[:=]\s{0,4}[\[(]\s{0,20}"
            r"[\\]{0,7}[\"'][^\"'\\\n]{1,128}[\\]{0,7}[\"']\s{0,4},\s{0,20}[\\]{0,7}[\"'])"
            r"(?!\[)[^\"'\\\n]{3,512}(?P<after>[\\]{0,7}[\"'])"
        ),
        _keep_label("password"),
    ),
    (
        # The words of a wallet (BIP 39): a sentence has a shorter word among twelve.
        re.compile(
            r"(?P<keep>\b(?:(?:seed|recovery|secret|backup|wallet)[ _-]?(?:phrase|words)|mnemonic)"
            r"(?: phrase)?[\\\"'*]{0,4}\s{0,4}(?:[:=]|\bis\b):?[*]{0,2}\s{0,4}[\\\"'`]{0,4})"
            r"[a-z]{3,8}(?:[ ,]{1,2}[a-z]{3,8}){11,23}\b",
            re.IGNORECASE,
        ),
        _keep_label("secret"),
    ),
    (
        # SQL: ALTER USER ada WITH PASSWORD '...', SET PASSWORD FOR 'ada' = '...'.
        re.compile(
            r"(?P<keep>\bpassword\s{1,4}(?:for\s{1,4}[^\s=]{1,128}\s{0,4}=\s{0,4})?')"
            r"(?!\[)(?P<value>[^'\n]{4,256})(?P<after>')",
            re.IGNORECASE,
        ),
        _value,
    ),
    (
        # A call that sets a name: define('DB_PASSWORD', '...').
        re.compile(
            r"(?P<keep>\b(?:define|putenv|set\w{0,32}|append|header|add_?header)\(\s{0,4}[\"']"
            r"[\w.-]{0,64}?(?:password|passwd|pwd|secret|token|api[_-]?key|passphrase)[\"']"
            r"\s{0,4},\s{0,4}[\"'])(?P<value>[^\"'\n\[][^\"'\n]{3,512})(?P<after>[\"'])",
            re.IGNORECASE,
        ),
        _value,
    ),
    (
        # A pair of attributes: name="password" value="...".
        re.compile(
            r"(?P<keep>\b(?:name|key|id)=[\"'][\w.:-]{0,64}?(?:password|passwd|pwd|secret|token|"
            r"api[_-]?key|passphrase)[\"']\s{1,8}(?:value|content)=[\"'])"
            r"(?P<value>[^\"'\n]{4,512})(?P<after>[\"'])",
            re.IGNORECASE,
        ),
        _value,
    ),
    (
        re.compile(
            r"(?P<keep>\b(?:priv(?:ate)?|secret|signing)[ _-]?key\W{1,4})(?:0x)?[0-9a-f]{32,128}\b",
            re.IGNORECASE,
        ),
        _keep_label("secret"),
    ),
    (
        _pattern(
            r"(?P<keep>\bcurl\s[^\n]{0,200}?(?:-u|--user)[ "
            r"=][\"']?[^\s:\"']{1,64}:)[^\s\"'\[]{3,256}"
        ),
        _keep_label("password"),
    ),
    (
        _pattern(
            r"(?P<keep>\b(?:mysql(?:dump|admin)?|mariadb|sshpass(?= -p))\s"
            r"(?:[^\n]{0,200}?(?<![\w-])-p|(?<=sshpass )-p )['\"]?)"
            r"[^\s'\"\[$-][^\s'\"]{2,255}"
        ),
        _keep_label("password"),
    ),
    (
        # A user, then a password; a port after -p is a number.
        _pattern(
            r"(?P<keep>(?<!\S)(?:-u|--user(?:name)?)[ =]?[\"']?[\w.@-]{1,64}[\"']?\s-p[ =]?[\"']?)"
            r"(?![\d.:]{1,32}(?:\s|/|\Z))[^\s'\"\[$<-][^\s'\"]{2,255}"
        ),
        _login,
    ),
    (
        _pattern(
            r"(?P<keep>\bredis-cli\s(?:[^\n]{0,200}?\s)?-a\s[\"']?)[^\s'\"\[$<-][^\s'\"]{2,255}"
        ),
        _keep_label("password"),
    ),
    (
        # A name and a value without a sign between them: a Dockerfile, a command that configures.
        re.compile(
            r"(?P<keep>(?:^[ \t]{0,8}(?:ENV|setx?)"
            r"|\b(?:config(?:ure)?|secrets?|env|vars?|variables?)\s(?:set|add|put|create))"
            r"\s{1,4}[\w.:-]{0,64}?(?:password|passwd|pwd|secret|token|secret_access_key|api[_-]?key|"
            r"passphrase)\s{1,4}[\"']?)(?P<value>[^\s\"'\[=-][^\s\"']{5,512})",
            re.IGNORECASE | re.MULTILINE,
        ),
        _value,
    ),
    (
        _pattern(
            r"(?P<keep>\b(?:machine\s{1,8}\S{1,128}|"
            r"default)\s{1,8}login\s{1,8}\S{1,128}\s{1,8}password\s{1,8})"
            r"(?!\[)\S{1,256}"
        ),
        _keep_label("password"),
    ),
    (
        _pattern(
            r"(?P<keep>--?(?:[a-z]{1,16}-){0,3}(?:password|passwd|pass|pwd|token|secret|"
            r"api-?key|secret-key|access-key)"
            r"[ \t=]{1,4}[\"']?)(?P<value>[^\s\"'\[-][^\s\"']{3,512})",
            re.IGNORECASE,
        ),
        _flag,
    ),
    (
        re.compile(
            r"(?P<keep><(?:\w{1,32}:)?(?:\w{1,32}[_-])?(?:password|passwd|pwd|secret|token|"
            r"api-?key|passphrase)"
            r"(?:\s[^<>]{0,200})?>\s{0,8})[^\s<>\[$][^<>]{0,512}(?P<after></)",
            re.IGNORECASE,
        ),
        _keep_label("secret"),
    ),
    (
        re.compile(
            rf"(?P<keep>(?={LABEL_LETTERS})(?:(?P<password>{PASSWORDS})|{KEYS})"
            rf"(?:[\\\"'`*]|&quot;|&#3[49];|%22){{0,4}}{SUBJECT}\s{{0,4}}(?P<linked>{LINK}):?\*{{0,2}}(?:\s{{0,4}}|{BLOCK})"
            r"(?:[\\`*]{0,2}(?P<quote>[\"'`«])\s?|(?:[\\\"'`*]|&quot;|&#3[49];|%22){0,4}))"
            r"(?!\[|\s|&quot|&#3)(?:(?(quote)(?P<quoted>[^\"'`»\n\\]{4,512})|(?!))|"
            r"(?P<bare>(?:[^\s\"'`,;}{\\&]|&(?![\w.-]{1,64}=)){4,512}))",
            re.IGNORECASE,
        ),
        replace_assigned,
    ),
    (
        re.compile(
            rf"(?P<keep>(?:{CODES})[\"'*]{{0,3}}\s{{0,4}}(?:{LINK}:?|(?<=OTP |CVV |"
            rf"CVC ))\s{{0,4}}"
            r"[\"'*]{0,3}(?:[A-Z]-)?)"
            r"\d[\d -]{1,8}\d(?!\d|[.,]\d)",
            re.IGNORECASE,
        ),
        _keep_label("code"),
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


# Groups of the patterns that need a label, and so are tried where a text has a part of one.
_BY_LABEL = frozenset(("password", "value"))


def redact_secrets(text: str) -> str:
    """Return ``text`` with secrets and personal addresses replaced by their kind, in brackets.

    Covers private keys, passwords in connection strings, command lines, markup and assignments,
    one-time codes and PINs by their label, cookies, JWT and bearer tokens, signatures in URLs, API
    keys of well-known forms, AWS key ids, payment cards and IBANs (by check digit) and e-mail
    addresses. Phone numbers and names have no fixed form; your own function may redact them after
    calling this one. Applying it twice has no further effect.
    """
    folded = text.casefold()
    labelled = any(part in folded for part in LABEL_PARTS)
    for pattern, replacement in _PATTERNS:
        if labelled or not _BY_LABEL & pattern.groupindex.keys():
            text = pattern.sub(replacement, text)
    return text
