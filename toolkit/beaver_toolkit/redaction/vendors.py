"""Tokens that begin with a mark of their vendor, from the public descriptions of their formats.

A body is shorter here than the vendor makes it now: lengths change, and the mark is what tells.
"""

import re
from collections.abc import Callable

import attrs

from beaver_toolkit.redaction.randomness import is_long, is_varied
from beaver_toolkit.redaction.rules import LEFT, Rule

_WORD = r"[A-Za-z0-9]"
_TEXT = r"[A-Za-z0-9_-]"
_DOTS = r"[A-Za-z0-9_.-]"
_BASE64 = r"[A-Za-z0-9_+/=-]"
_HEX = r"[0-9A-Fa-f]"


@attrs.frozen
class Token:
    """Tokens of one vendor: the kind, the beginnings of the tokens, and the pattern of their rest."""

    kind: str
    marks: tuple[str, ...]
    body: str


def _token(kind: str, marks: str, body: str = _TEXT + "{16,}") -> Token:
    return Token(kind, tuple(marks.split()), body)


TOKENS = (
    # Language models.
    _token("anthropic key", "sk-ant-"),
    _token("openai key", "sk-proj- sk-svcacct- sk-admin- sk-None-"),
    _token("openrouter key", "sk-or-v1- sk-or-"),
    _token("hugging face token", "hf_ api_org_", _WORD + "{20,}"),
    _token("groq key", "gsk_", _WORD + "{20,}"),
    _token("replicate token", "r8_", _WORD + "{20,}"),
    _token("perplexity key", "pplx-", _WORD + "{20,}"),
    _token("xai key", "xai-", _WORD + "{20,}"),
    _token("nvidia key", "nvapi-"),
    _token("langsmith key", "lsv2_pt_ lsv2_sk_ ls__"),
    _token("langfuse key", "sk-lf- pk-lf-", r"[A-Za-z0-9-]{16,}"),
    _token("pinecone key", "pcsk_"),
    _token("tavily key", "tvly-"),
    _token("fireworks key", "fw_", _WORD + "{16,}"),
    _token("voyage key", "pa-", _TEXT + "{36,}"),
    _token("cerebras key", "csk-", _WORD + "{20,}"),
    _token("firecrawl key", "fc-", _HEX + "{24,}"),
    _token("e2b key", "e2b_", _HEX + "{20,}"),
    # Code and packages.
    _token("github token", "ghp_ gho_ ghu_ ghs_ ghr_ github_pat_", r"[A-Za-z0-9_]{20,}"),
    _token("gitlab token", "glpat- gldt- glrt- glcbt- glptt- glft- glimt- glagent- gloas- glsoat-", _DOTS + "{16,}"),
    _token("gitlab token", "glffct- GR1348941", _DOTS + "{16,}"),
    _token("npm token", "npm_", _WORD + "{20,}"),
    _token("pypi token", "pypi-", _TEXT + "{32,}"),
    _token("rubygems key", "rubygems_", _HEX + "{24,}"),
    _token("crates.io token", "cio", _WORD + "{30,34}"),
    _token("nuget key", "oy2", r"[a-z0-9]{43}"),
    _token("docker token", "dckr_pat_ dckr_oat_"),
    _token("jfrog token", "AKCp cmVmd", _WORD + "{40,}"),
    _token("circleci token", "CCIPAT_ CCIPRJ_", r"[A-Za-z0-9_]{20,}"),
    _token("buildkite token", "bkua_ bkat_ bkpt_ bkct_", _WORD + "{20,}"),
    _token("sourcegraph token", "sgp_ slk_", r"(?:[A-Fa-f0-9]{16}_|local_)?[A-Fa-f0-9]{32,}"),
    _token("sonar token", "sqp_ squ_ sqa_", _HEX + "{32,}"),
    _token("atlassian token", "ATATT3 ATCTT3 ATBB ATSTT3 ATOAT", _BASE64 + "{20,}"),
    _token("snyk token", "snyk_uat. snyk_sat.", _DOTS + "{20,}"),
    _token("postman key", "PMAK- PMAT-", r"[A-Za-z0-9-]{20,}"),
    _token("readme key", "rdme_", _WORD + "{30,}"),
    _token("jetbrains token", "perm: perm-", r"[A-Za-z0-9+/=.-]{24,}"),
    _token("pulumi token", "pul-", _HEX + "{24,}"),
    _token("prefect key", "pnu_ pnb_", _WORD + "{24,}"),
    _token("terraform token", "atlasv1.", _TEXT + "{20,}"),
    _token("vault token", "hvs. hvb. hvr.", _TEXT + "{20,}"),
    _token("doppler token", "dp.pt. dp.st. dp.ct. dp.sa. dp.scim. dp.audit.", _DOTS + "{20,}"),
    _token("infisical token", "st.", r"[0-9a-f]{16,}\.[0-9a-f]{16,}(?:\.[0-9a-f]{16,})?"),
    _token("1password token", "ops_eyJ", _BASE64 + "{40,}"),
    _token("age key", "AGE-SECRET-KEY-1", r"[0-9A-Za-z]{30,}"),
    # Clouds and hosts.
    _token("aws access key", "AKIA ASIA ABIA ACCA AIDA AROA", r"[A-Z0-9]{16}\b"),
    _token("aws bedrock key", "ABSK", r"[A-Za-z0-9+/=]{60,}"),
    _token("google api key", "AIza", _TEXT + "{30,}"),
    _token("google oauth secret", "GOCSPX-", _TEXT + "{20,}"),
    _token("google oauth token", "ya29. 1//0", _DOTS + "{20,}"),
    _token("digitalocean token", "dop_v1_ doo_v1_ dor_v1_", _HEX + "{32,}"),
    _token("heroku key", "HRKU-", r"[A-Za-z0-9_-]{30,}"),
    _token("fly token", "fo1_ fm1_ fm2_ fm1r_ fm1a_", r"[A-Za-z0-9_+/=,-]{30,}"),
    _token("vercel token", "vcp_ vci_ vca_ vcr_ vck_ vercel_", _WORD + "{20,}"),
    _token("netlify token", "nfp_ nfc_ nfo_ nfu_ nfb_", _WORD + "{24,}"),
    _token("render key", "rnd_", _WORD + "{20,}"),
    _token("scaleway key", "SCW", r"[A-Z0-9]{17}\b"),
    _token("alibaba key", "LTAI", _WORD + "{12,}"),
    _token("tencent key", "AKID", _WORD + "{28,}"),
    _token("intercom token", "dG9rOj", r"[A-Za-z0-9+/=]{24,}"),
    _token("clojars token", "CLOJARS_", _HEX + "{32,}"),
    _token("tailscale key", "tskey-", r"[A-Za-z0-9-]{16,}"),
    _token("ngrok key", "ak_2 cr_2", _WORD + "{24,}"),
    # Data.
    _token("supabase token", "sbp_ sb_secret_ sba_", r"[A-Za-z0-9_-]{20,}"),
    _token("planetscale token", "pscale_tkn_ pscale_pw_ pscale_oauth_ pscale_app_", _DOTS + "{20,}"),
    _token("neon key", "napi_ npg_", _WORD + "{12,}"),
    _token("databricks token", "dapi dose dkea dosec", r"[0-9a-f]{32}(?:-\d)?"),
    _token("airtable token", "pat", r"[A-Za-z0-9]{14}\.[A-Za-z0-9]{32,}"),
    _token("convex key", "prod: dev:", r"[a-z]+-[a-z]+-\d+\|[A-Za-z0-9+/=]{30,}"),
    _token("elastic key", "essu_", _BASE64 + "{30,}"),
    _token("mapbox token", "sk.eyJ pk.eyJ", _DOTS + "{40,}"),
    _token("posthog key", "phx_ phs_ phc_", _WORD + "{30,}"),
    _token("segment token", "sgp_ sgs_", _WORD + "{30,}"),
    _token("contentful token", "CFPAT-", _TEXT + "{30,}"),
    _token("typeform token", "tfp_", _TEXT + "{30,}"),
    _token("hubspot token", "pat-na1- pat-na2- pat-eu1- pat-ap1-", r"[A-Za-z0-9-]{24,}"),
    # Watching.
    _token("grafana token", "glsa_ glc_", r"[A-Za-z0-9_+/=]{24,}"),
    _token("sentry token", "sntrys_ sntryu_ sntrya_ sntryi_", _BASE64 + "{30,}"),
    _token("new relic key", "NRAK- NRAA- NRJS- NRII- NRRA- NRSP- NRIQ-", _TEXT + "{16,}"),
    _token("dynatrace token", "dt0c01. dt0s01. dt0s16. dt0s08. dt0s06.", r"[A-Z0-9]{20,}\.[A-Z0-9]{40,}"),
    _token("honeycomb key", "hcaik_ hcbik_ hcalk_ hcamk_ hcxik_", _WORD + "{24,}"),
    _token("axiom token", "xaat- xapt-", r"[0-9a-f-]{24,}"),
    _token("launchdarkly key", "sdk- mob- api-", r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}"),
    _token("statsig key", "secret-", _WORD + "{30,}"),
    # Messages.
    _token("slack token", "xoxb- xoxp- xoxa- xoxr- xoxs- xoxo- xoxd- xoxc- xapp- xwfp-", r"[A-Za-z0-9%+/=-]{10,}"),
    _token("slack token", "xoxe- xoxe.xoxp- xoxe.xoxb-", r"[A-Za-z0-9%+/=-]{10,}"),
    _token("sendgrid key", "SG.", r"[A-Za-z0-9_-]{14,}\.[A-Za-z0-9_-]{20,}"),
    _token("twilio key", "SK AC", r"[0-9a-f]{32}\b"),
    _token("mailgun key", "key-", r"[0-9a-z]{32}\b"),
    _token("brevo key", "xkeysib- xsmtpsib-", r"[A-Za-z0-9-]{24,}"),
    _token("resend key", "re_", r"[A-Za-z0-9]{6,}_[A-Za-z0-9]{16,}"),
    # Work.
    _token("linear key", "lin_api_ lin_oauth_ lin_wh_", _WORD + "{24,}"),
    _token("notion token", "ntn_ secret_", _WORD + "{30,}"),
    _token("asana token", "1/ 2/", r"\d{12,}(?:/\d{12,})?:[0-9a-f]{32}"),
    _token("clickup token", "pk_", r"\d{6,}_[A-Z0-9]{24,}"),
    _token("figma token", "figd_ figo_ figu_ figr_", r"[A-Za-z0-9_-]{20,}"),
    _token("frame.io token", "fio-u-", _TEXT + "{30,}"),
    _token("dropbox token", "sl.", r"(?:u\.)?[A-Za-z0-9_-]{40,}"),
    # Money.
    _token("stripe key", "sk_live_ sk_test_ rk_live_ rk_test_ pk_live_ sk_org_ whsec_", r"[A-Za-z0-9_/+=]{16,}"),
    _token("square token", "sq0atp- sq0csp- EAAA", _TEXT + "{20,}"),
    _token("paypal token", "access_token$production$ access_token$sandbox$", r"[0-9a-z]{10,}\$[0-9a-f]{20,}"),
    _token("shopify token", "shpat_ shpss_ shpca_ shppa_ shpua_ shptka_", _WORD + "{20,}"),
    _token("plaid token", "access-sandbox- access-development- access-production- public-sandbox-", r"[0-9a-f-]{24,}"),
    _token("razorpay key", "rzp_live_ rzp_test_", _WORD + "{10,}"),
    _token("flutterwave key", "FLWSECK- FLWSECK_TEST- FLWPUBK-", r"[A-Za-z0-9_-]{12,}"),
    _token("adyen key", "AQE", r"[A-Za-z0-9+/=_.-]{60,}"),
    _token("paddle key", "pdl_live_apikey_ pdl_sdbx_apikey_ pdl_ntfset_", r"[A-Za-z0-9_]{20,}"),
    _token("easypost key", "EZAK EZTK", _WORD + "{50,}"),
    _token("shippo token", "shippo_live_ shippo_test_", _HEX + "{32,}"),
    _token("wallet key", "xprv yprv zprv tprv", r"[1-9A-HJ-NP-Za-km-z]{60,}"),
    # The rest.
    _token("facebook token", "EAA", r"[A-Za-z0-9]{60,}"),
    _token("instagram token", "IGQV IGAA", _TEXT + "{40,}"),
    _token("twitter token", "AAAAAAAAAAAAAAAAAAAAA", r"[A-Za-z0-9%]{40,}"),
    _token("twitch token", "oauth:", r"[a-z0-9]{24,}"),
    _token("okta token", "SSWS ", _TEXT + "{30,}"),
    _token("stytch secret", "secret-live- secret-test-", _BASE64 + "{20,}"),
    _token("ory token", "ory_pat_ ory_apikey_ ory_at_ ory_rt_ ory_st_", _DOTS + "{24,}"),
    _token("elevenlabs key", "sk_", r"[0-9a-f]{32,}\b"),
    _token("openai key", "sk-", r"[A-Za-z0-9]{20,}"),
    _token("adobe secret", "p8e-", _TEXT + "{24,}"),
    _token("duffel token", "duffel_live_ duffel_test_", _TEXT + "{24,}"),
    _token("samsara token", "samsara_api_", _WORD + "{20,}"),
)  # fmt: skip


_KINDS = {mark.encode(): each.kind for each in reversed(TOKENS) for mark in each.marks}
_LENGTHS = sorted({*map(len, _KINDS)}, reverse=True)


def kind_of(token: bytes) -> str:
    """Return the kind of a token by the longest mark with which it begins."""
    return next((kind for length in _LENGTHS if (kind := _KINDS.get(token[:length]))), "token")


def _is_token(text: bytes) -> bool:
    return is_varied(text) or is_long(text)


def _pattern(body: Callable[[Token], str]) -> str:
    """Return one pattern for all tokens: a search for all vendors costs what a search for one of them costs."""
    marks: dict[str, list[str]] = {}
    for token in TOKENS:
        marks.setdefault(body(token), []).extend(map(re.escape, token.marks))
    either = (f"(?:{mark}){rest}" for rest, some in marks.items() for mark in ["|".join(some)])
    return f"{LEFT}({'|'.join(either)})"


def _begin(token: Token) -> str:
    """Return a pattern for the first characters of a body: long counts make a search for many patterns slow."""
    first = re.match(r"(\[[^]]+\])\{\d+", token.body)
    return token.body if first is None else first[1] + "{6}"


RULES = (
    Rule(
        kind="token",
        pattern=_pattern(lambda token: token.body),
        hints=(_pattern(_begin),),
        check=_is_token,
        kind_of=kind_of,
    ),
)
