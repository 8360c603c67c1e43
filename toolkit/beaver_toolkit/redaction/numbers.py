"""Card and account numbers, each with its check digits; addresses of people, where the policy wants it."""

from beaver_toolkit.redaction.rules import Rule


def is_card(value: bytes) -> bool:
    """Return whether digits pass the check of Luhn, and begin and end as those of an issuer of cards."""
    digits = [each - 0x30 for each in value if 0x30 <= each <= 0x39]  # noqa: PLR2004 - the digits of ASCII
    if len(set(digits)) < 2 or not _is_issued(digits):  # noqa: PLR2004 - a row of one digit is none
        return False
    doubled = (each * 2 - 9 * (each > 4) for each in digits[-2::-2])  # noqa: PLR2004 - Luhn
    return (sum(digits[-1::-2]) + sum(doubled)) % 10 == 0


def _is_issued(digits: list[int]) -> bool:
    first, two = digits[0], digits[0] * 10 + digits[1]
    lengths = {
        4: (13, 16, 19), 5: (16,), 2: (16,), 3: (15,) if two in (34, 37) else (14, 16), 6: (16, 17, 18, 19),
    }.get(first, ())  # fmt: skip
    return len(digits) in lengths


def is_iban(value: bytes) -> bool:
    """Return whether the check digits of an account number (ISO 13616) hold."""
    plain = bytes(each for each in value.upper() if each not in b" -")
    if not 15 <= len(plain) <= 34:  # noqa: PLR2004 - the shortest and the longest
        return False
    moved = (plain[4:] + plain[:4]).decode("ascii")
    return int("".join(str(int(each, 36)) for each in moved)) % 97 == 1


_COUNTRIES = (
    "AD|AE|AL|AT|AZ|BA|BE|BG|BH|BR|BY|CH|CR|CY|CZ|DE|DK|DO|EE|EG|ES|FI|FO|FR|GB|GE|GI|GL|GR|GT|HR|HU|IE|IL|IQ|IS|IT|JO"
    "|KW|KZ|LB|LC|LI|LT|LU|LV|LY|MC|MD|ME|MK|MR|MT|MU|NL|NO|PK|PL|PS|PT|QA|RO|RS|SA|SC|SE|SI|SK|SM|ST|SV|TL|TN|TR|UA|VA"
    "|VG|XK"
)

RULES = (
    Rule(
        kind="card number",
        hints=(r"\d(?:[ .-]?\d){12}",),
        pattern=r"(?:^|[^\w.-]|\\[nrt]|%[0-9A-F]{2})"
        r"((?:[3-6]\d{3}|2[2-7]\d\d)(?:(?:[ -]?\d){9,15}|(?:\.\d{4}){3}))(?:\.?$|\.?[^\w./=+-]|\.\s)",
        check=is_card,
    ),
    Rule(
        kind="account number",
        hints=(r"[A-Z]{2}\d\d[ -]?[A-Z0-9]{4}[ -]?[A-Z0-9]{4}",),
        pattern=r"(?:^|[^A-Za-z0-9]|\\[nrt]|%[0-9A-F]{2})"
        rf"((?:{_COUNTRIES})\d\d(?:[ -]?[A-Z0-9]{{4}}){{2,7}}(?:[ -]?[A-Z0-9]{{1,3}})?)(?:[^A-Za-z0-9]|$)",
        check=is_iban,
    ),
)

EMAILS = Rule(
    kind="e-mail address",
    pattern=r"\b[A-Za-z0-9._%+-]{1,64}@[A-Za-z0-9-]{1,63}(?:\.[A-Za-z0-9-]{1,63}){0,8}\.[A-Za-z]{2,24}\b",
)
PHONES = Rule(
    kind="phone number",
    pattern=r"(?:^|[^\w.+/=-])(\+\d{1,3}[ .-]?(?:\(\d{1,5}\)[ .-]?)?\d{1,5}(?:[ ./-]?\d{2,5})"
    r"{1,5}|\(?0?[2-9]\d{2}\)?[ .-]\d{3}[ .-]\d{4}|0\d{2,5}[ /-]\d{3,9}(?:[ -]\d{1,6})"
    r"?|1[3-9]\d{9})\b",
)
