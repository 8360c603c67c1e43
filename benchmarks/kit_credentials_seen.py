"""Credentials of the formats that the rules of redaction were written on. All of them are made up when this is read."""

from collections.abc import Iterator

from kit_credentials import BASE64, HEX, LOWER, UPPER, WORD, Credential, made_up, marked

_TOKENS = {
    "anthropic key": ("sk-ant-api03-", 80, WORD),
    "openai project key": ("sk-proj-", 80, WORD),
    "openai service account": ("sk-svcacct-", 60, WORD),
    "openrouter key": ("sk-or-v1-", 64, HEX),
    "hugging face token": ("hf_", 34, WORD),
    "groq key": ("gsk_", 52, WORD),
    "replicate token": ("r8_", 37, WORD),
    "perplexity key": ("pplx-", 48, LOWER),
    "github token": ("ghp_", 36, WORD),
    "github oauth token": ("gho_", 36, WORD),
    "github app token": ("ghs_", 36, WORD),
    "github fine-grained token": ("github_pat_11", 80, WORD),
    "gitlab token": ("glpat-", 20, WORD),
    "gitlab runner token": ("glrt-", 20, WORD),
    "npm token": ("npm_", 36, WORD),
    "pypi token": ("pypi-AgEIcHlwaS5vcmc", 120, WORD),
    "rubygems key": ("rubygems_", 48, HEX),
    "docker token": ("dckr_pat_", 27, WORD),
    "atlassian token": ("ATATT3xFfGF0", 160, WORD),
    "postman key": ("PMAK-", 59, LOWER),
    "pulumi token": ("pul-", 40, HEX),
    "vault token": ("hvs.", 90, WORD),
    "doppler token": ("dp.pt.", 43, WORD),
    "google key": ("AIza", 35, WORD),
    "google oauth secret": ("GOCSPX-", 28, WORD),
    "google access token": ("ya29.", 120, WORD),
    "digitalocean token": ("dop_v1_", 64, HEX),
    "fly token": ("fo1_", 43, WORD),
    "netlify token": ("nfp_", 36, WORD),
    "render key": ("rnd_", 28, WORD),
    "tailscale key": ("tskey-auth-", 30, WORD),
    "supabase token": ("sbp_", 40, HEX),
    "planetscale token": ("pscale_tkn_", 43, WORD),
    "databricks token": ("dapi", 32, HEX),
    "posthog key": ("phx_", 43, WORD),
    "hubspot token": ("pat-na1-", 32, HEX),
    "grafana token": ("glsa_", 41, WORD),
    "sentry token": ("sntrys_", 80, WORD),
    "new relic key": ("NRAK-", 27, UPPER),
    "honeycomb key": ("hcaik_", 58, LOWER),
    "slack bot token": ("xoxb-", 50, WORD),
    "slack app token": ("xapp-1-", 60, WORD),
    "twilio key": ("SK", 32, HEX),
    "mailgun key": ("key-", 32, HEX),
    "brevo key": ("xkeysib-", 64, HEX),
    "linear key": ("lin_api_", 40, WORD),
    "notion token": ("ntn_", 46, WORD),
    "figma token": ("figd_", 40, WORD),
    "stripe key": ("sk_live_", 24, WORD),
    "stripe restricted key": ("rk_live_", 24, WORD),
    "stripe webhook secret": ("whsec_", 32, WORD),
    "square token": ("sq0atp-", 22, WORD),
    "shopify token": ("shpat_", 32, HEX),
    "razorpay key": ("rzp_live_", 14, WORD),
    "elevenlabs key": ("sk_", 48, HEX),
    "age key": ("AGE-SECRET-KEY-1", 58, UPPER),
    "aws access key": ("AKIA", 16, UPPER),
    "aws session key": ("ASIA", 16, UPPER),
    "unknown vendor": ("acme_live_", 32, WORD),
    "another unknown vendor": ("zrk-", 40, WORD),
}

_FRAMES = (
    "Use {} for the staging account.",
    'client = Client(key="{}")',
    "export TOKEN={}",
    "请使用{}登录测试环境",
    '{{"k": "a\\n{}"}}',
    "https://api.example.org/v1?k={}&page=2",
    "```\n{}\n```",
)


def _tokens() -> Iterator[Credential]:
    for kind, (mark, length, alphabet) in _TOKENS.items():
        token = marked(mark + made_up(kind, length, alphabet))
        yield Credential(
            kind=kind,
            texts=tuple(frame.format(token) for frame in _FRAMES),
            innocent=(f"The keys of this vendor begin with `{mark[:6]}`.", f"{mark}... is its shape"),
        )


def _word(kind: str, length: int = 12) -> str:
    return made_up(kind, length) + "7x"


def _pem(kind: str, seed: str) -> Credential:
    lines = "\n".join(made_up(f"{seed}{line}", 64, BASE64) for line in range(6))
    text = f"-----BEGIN {kind}-----\n{lines}\n-----END {kind}-----"
    return Credential(
        kind=kind.lower(),
        texts=(marked(text), 'key = "' + marked(text.replace("\n", "\\n")) + '"'),
        innocent=(f"A file that begins with -----BEGIN {kind}----- is a secret.",),
    )


_SHAPES = (
    Credential(
        kind="aws secret key",
        texts=(
            f"aws_secret_access_key = {marked(made_up('aws', 40, BASE64))}",
            f"AKIA{made_up('aws id', 16, UPPER)} {marked(made_up('aws 2', 40, BASE64))}",
        ),
        innocent=("aws_secret_access_key = os.environ['AWS_SECRET_ACCESS_KEY']",),
    ),
    Credential(
        kind="web token",
        texts=(f"Authorization: Bearer {marked('eyJ' + made_up('h', 33) + '.eyJ' + made_up('p', 60) + '.' + made_up('s', 43))}",),
        innocent=("Authorization: Bearer <token>", "headers = {'Authorization': f'Bearer {token}'}"),
    ),
    Credential(
        kind="bearer token",
        texts=(f"Authorization: Bearer {marked(made_up('bearer', 40))}", f"curl -H 'Authorization: Basic {marked(made_up('basic', 24))}=='"),
        innocent=("The ring bearer arrived.",),
    ),
    Credential(
        kind="cookie",
        texts=(f"Cookie: sessionid={marked(made_up('cookie', 32, LOWER))}; theme=dark",),
        innocent=("Cookie: theme=dark",),
    ),
    Credential(
        kind="connection string",
        texts=(
            f"postgres://admin:{marked(_word('pg'))}@db.example.org:5432/app",
            f"mongodb+srv://app:{marked(_word('mongo'))}@cluster0.example.net/test",
            f"redis://:{marked(_word('redis'))}@cache:6379/0",
            f"jdbc:mysql://db/app?user=root&password={marked(_word('jdbc'))}",
            f"Server=db;Database=app;User Id=sa;Password={marked(_word('odbc'))};",
        ),
        innocent=("postgres://localhost/app", "postgres://user:password@host/db", "postgres://$USER:$PASSWORD@host/db"),
    ),
    Credential(
        kind="azure key",
        texts=(
            f"DefaultEndpointsProtocol=https;AccountName=app;AccountKey={marked(made_up('azure', 86, BASE64) + '==')};",
            f"https://app.blob.core.windows.net/c?sv=2024-11-04&sig={marked(made_up('sas', 43) + '%3D')}",
        ),
        innocent=("DefaultEndpointsProtocol=https;AccountName=app;",),
    ),
    Credential(
        kind="webhook",
        texts=(
            f"https://hooks.slack.com/services/{marked('T' + made_up('t', 8, UPPER) + '/B' + made_up('b', 8, UPPER) + '/' + made_up('w', 24))}",
            f"https://discord.com/api/webhooks/123456789012345678/{marked(made_up('discord', 68))}",
        ),
        innocent=("https://docs.example.org/webhooks/overview",),
    ),
    Credential(kind="telegram token", texts=(f"bot = Bot('{marked('712345678:AA' + made_up('telegram', 33))}')",), innocent=("at 12:30:45",)),
    Credential(
        kind="sendgrid key",
        texts=(f"SENDGRID={marked('SG.' + made_up('sg', 22) + '.' + made_up('sg2', 43))}",),
        innocent=("SG.example.org",),
    ),
    Credential(
        kind="named secret",
        texts=(
            f'api_key = "{marked(made_up("named", 32, HEX))}"',
            f"DATADOG_API_KEY: {marked(made_up('datadog', 32, HEX))}",
            f"client_secret={marked(made_up('client', 40))}",
            f"The token for the CI is {marked(made_up('ci', 40, HEX))}",
            f"der API-Schlüssel lautet {marked(made_up('de', 32))}",
            f"密钥：{marked(made_up('zh', 32))}",
            f"x-api-key: {marked(made_up('header', 40))}",
        ),
        innocent=("api_key = os.environ['API_KEY']", "cache_key = 'user_profile_settings_v2'", "commit 2fd4e1c67a2d28fced849ee1bb76e7391b93eb12"),
    ),
    Credential(
        kind="password",
        texts=(
            f"password={marked('hunter2')}", f'"password": "{marked("Tr0ub4dor&3")}"', f"PGPASSWORD={marked('s3cr3t-pg')} psql",
            f"mysql -u root -p{marked('R00tPa55')}", f"curl -u ada:{marked('l0velace!')} https://example.org",
        ),
        innocent=("password = getpass()", "password: str", "password=None", "pass: 12 tests", "passed=14"),
    ),
    Credential(
        kind="password in a sentence",
        texts=(
            f"my password is {marked('hunter2')}", f"The wifi password at the cabin is {marked('Fischbr0t!')}.",
            f"Das Passwort lautet {marked('Sommer2024!')}", f"Mein Kennwort für die Bank ist {marked('geheim99')}.",
            f"密码是 {marked('abc12345')}", f"服务器的密码改成了{marked('Qwer!2026')}，请记住",
        ),
        innocent=(
            "The password is required.", "My password was changed yesterday.", "Das Passwort ist zu kurz.",
            "密码不能为空", "I forgot my password.",
        ),
    ),
    Credential(
        kind="card number",
        texts=(f"card {marked('4111 1111 1111 1111')}", f"Visa {marked('4242424242424242')}, 12/30", f"amex {marked('3782 822463 10005')}"),
        innocent=("order 4111 1111 1111 1112", "1700000000000", "0.4242424242424242"),
    ),
    Credential(
        kind="account number",
        texts=(f"IBAN {marked('DE89 3704 0044 0532 0130 00')}", f"pay to {marked('GB82WEST12345698765432')}"),
        innocent=("DE89 3704 0044 0532 0130 01",),
    ),
)  # fmt: skip

FORMATS = (
    *_tokens(),
    *(
        _pem(kind, kind)
        for kind in ("RSA PRIVATE KEY", "OPENSSH PRIVATE KEY", "EC PRIVATE KEY", "PRIVATE KEY", "PGP PRIVATE KEY BLOCK")
    ),
    *_SHAPES,
)
