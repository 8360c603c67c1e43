"""Secrets inside of addresses: passwords, tokens, signatures, and webhooks, which are secrets as a whole."""

from beaver_toolkit.redaction.randomness import is_varied
from beaver_toolkit.redaction.rules import MIXED, Rule
from beaver_toolkit.redaction.values import is_address_password, is_path_secret, is_query_secret

RULES = (
    Rule(
        kind="password of an address",
        pattern=r"[A-Za-z][A-Za-z0-9+.-]{1,30}:(?:[a-z]+:)?//[^\s:/@\"'<>\x00-\x1f]{0,100}:"
        r"([^\s\"'<>\x00-\x1f/]{1,200}|[^\s\"'<>@\x00-\x1f]{1,200})@[A-Za-z0-9\[$\{%*._-]",
        hints=(r"://[^\s:/@\"'<>\x00-\x1f]*:",),
        check=is_address_password,
    ),
    Rule(
        kind="token of an address",
        pattern=r"https?://([A-Za-z0-9_-]{16,200})(?::x-oauth-basic)?@[A-Za-z0-9]",
        hints=(r"://[A-Za-z0-9_-]{16}",),
        check=is_varied,
    ),
    Rule(
        kind="webhook",
        pattern=r"(?i)https://(?:hooks\.slack(?:-gov)?\.com/(?:services|workflows|triggers)/|"
        r"(?:[a-z]+\.)?discord(?:app)?\.com/api/(?:v\d+/)?webhooks/"
        r"|[\w-]+\.webhook\.office\.com/webhookb2/|hook\.(?:[a-z0-9]+\.)"
        r"?make\.com/|[\w.-]+/(?:[\w-]{1,40}/){0,3}[\w-]{0,20}hooks?/)([\w/@+=.-]{12,300})",
        hints=(r"(?i)https://[\w.-]*hook|https://[\w./-]+hooks?/",),
        check=is_varied,
    ),
    Rule(
        kind="webhook",
        pattern=r"(?i)https://(?:hooks\.zapier\.com/hooks/catch/\d+|hook\.(?:[a-z0-9]+\.)?make\.com)/(\w{6,})",
        hints=(r"(?i)https://[\w.-]*hook|https://[\w./-]+hooks?/",),
    ),
    Rule(
        kind="token of an address",
        pattern=r"(?i)(?:https?|wss?|rtmps?)://[^\s\"'<>\x00-\x1f]{0,200}/(?:key|token|secret|private|auth|live\d?|v[1-4])[/-]"
        r"([A-Za-z0-9_-]{16,})(?:[/?#\"'\s]|$)",
        hints=(r"(?i)/(?:key|token|secret|private|auth|live\d?|v[1-4])[/-][A-Za-z0-9_-]{8}", MIXED),
        check=is_path_secret,
    ),
    Rule(
        kind="azure key",
        pattern=r"(?i)(?:AccountKey|SharedAccessKey|AccessKey|SharedSecret|SharedAccessSignature)"
        r"\s{0,2}=\s{0,2}([A-Za-z0-9+/=%&_.:-]{20,})",
        hints=(r"(?i)key\s{0,2}=\s{0,2}[A-Za-z0-9+/]{20}|sharedsecret|sharedaccesssignature",),
        check=is_varied,
    ),
    Rule(
        kind="secret of an address",
        pattern=r"(?i)[?&#](?:sig|signature|x-amz-signature|x-amz-security-token|x-goog-signature|"
        r"code|state|app_?id|(?:[a-z]+[_-]?){0,3}(?:key|token|secret|auth|jwt|sid|hash))=([A-Za-z0-9%+/=_.~-]{10,})",
        hints=(r"[?&#][A-Za-z_-]+=[A-Za-z0-9%+/=_.~-]{10}", MIXED),
        check=is_query_secret,
        rank=1,
    ),
    Rule(
        kind="password",
        pattern=r"(?i)[?&;](?:password|passwd|pass|pwd|pw)=([^&\s\"'#;<>\x00-\x1f]{4,200})",
        hints=(r"(?i)[?&;](?:pass|pw)",),
        check=is_address_password,
        rank=1,
    ),
)
