"""Credentials of rarer services and tools: written without sight of the rules, measured once, then used to improve them."""

from kit_credentials import BASE64, HEX, LOWER, UPPER, WORD, Credential, made_up, marked

URL_SAFE = WORD + "-_"
BASE32 = "ABCDEFGHIJKLMNOPQRSTUVWXYZ234567"
BECH32 = "qpzry9x8gf2tvdw0s3jn54khce6mua7l"


def word(seed: str, length: int, alphabet: str = WORD, *, prefix: str = "", suffix: str = "") -> str:
    """Return a marked credential that is made up."""
    return marked(prefix + made_up(seed, length, alphabet) + suffix)


def uuid(seed: str) -> str:
    """Return a random UUID."""
    return "-".join(made_up(f"{seed}{length}{at}", length, HEX) for at, length in enumerate((8, 4, 4, 4, 12)))


FORMATS = (
    Credential(
        kind="Adafruit IO key",
        texts=(
            f'#define AIO_USERNAME "mira"\n#define AIO_KEY      "{word("aio1", 28, prefix="aio_")}"',
            f"IO_USERNAME=mira IO_KEY={word('aio2', 28, prefix='aio_')} python feed.py",
            f"my Adafruit key is {word('aio3', 28, prefix='aio_')}, the feed is called temp",
        ),
        innocent=("aio_pika and aio_libs are packages for asyncio.",),
    ),
    Credential(
        kind="Adobe client secret",
        texts=(
            f"ADOBE_CLIENT_SECRET={word('adobe1', 32, URL_SAFE, prefix='p8e-')}",
            f'{{"client_id": "{made_up("adobeid", 32, HEX)}", "client_secret": "{word("adobe2", 32, URL_SAFE, prefix="p8e-")}"}}',
        ),
    ),
    Credential(
        kind="Clojars deploy token",
        texts=(
            f"env CLOJARS_USERNAME=tom CLOJARS_PASSWORD={word('cloj1', 60, HEX, prefix='CLOJARS_')} lein deploy clojars",
            f'{{:repositories {{"clojars" {{:username "tom" :password "{word("cloj2", 60, HEX, prefix="CLOJARS_")}"}}}}}}',
            f"The deploy token for Clojars: {word('cloj3', 60, HEX, prefix='CLOJARS_')}",
        ),
    ),
    Credential(
        kind="Cloudinary URL",
        texts=(
            f"CLOUDINARY_URL=cloudinary://{made_up('cln', 15, '123456789')}:{word('cl1', 27, URL_SAFE)}@kelp-media",
            f"cloudinary.config({{ cloud_name: 'kelp', api_key: '{made_up('cln2', 15, '123456789')}', api_secret: '{word('cl2', 27, URL_SAFE)}' }})",
        ),
        innocent=("Set CLOUDINARY_URL=cloudinary://<api_key>:<api_secret>@<cloud_name> in the environment.",),
    ),
    Credential(
        kind="Confluent Cloud secret",
        texts=(
            f'sasl.jaas.config=org.apache.kafka.common.security.plain.PlainLoginModule required username="{made_up("cfk", 16, UPPER)}" password="{word("cf1", 64, BASE64)}";',
            f"confluent api-key store {made_up('cfk2', 16, UPPER)} {word('cf2', 64, BASE64)} --resource lkc-7x2mv",
            f"CONFLUENT_CLOUD_API_SECRET={word('cf3', 64, BASE64)}",
        ),
    ),
    Credential(
        kind="Deno Deploy token",
        texts=(
            f"deployctl deploy --token={word('ddp1', 36, prefix='ddp_')} --project=kelp main.ts",
            f"DENO_DEPLOY_TOKEN: {word('ddp2', 36, prefix='ddp_')}",
            f"ich hab {word('ddp3', 36, prefix='ddp_')} in die CI von Deno eingetragen",
        ),
    ),
    Credential(
        kind="Defined Networking key",
        texts=(
            f"curl -H 'Authorization: Bearer {word('dn1', 26, BASE32, prefix='dnkey-', suffix='-' + made_up('dn1b', 52, BASE32))}' https://api.defined.net/v1/hosts",
            f"dnkey in the vault: {word('dn2', 26, BASE32, prefix='dnkey-', suffix='-' + made_up('dn2b', 52, BASE32))}",
        ),
    ),
    Credential(
        kind="Duffel token",
        texts=(
            f"const duffel = new Duffel({{ token: '{word('duf1', 43, URL_SAFE, prefix='duffel_live_')}' }})",
            f"for the flights use {word('duf2', 43, URL_SAFE, prefix='duffel_test_')} please",
        ),
        innocent=("duffel_live_mode_enabled = True",),
    ),
    Credential(
        kind="Dynatrace token",
        texts=(
            f"DT_API_TOKEN={word('dt1', 24, BASE32, prefix='dt0c01.', suffix='.' + made_up('dt1b', 64, BASE32))}",
            f"Authorization: Api-Token {word('dt2', 24, BASE32, prefix='dt0c01.', suffix='.' + made_up('dt2b', 64, BASE32))}",
            f"the platform token {word('dt3', 8, BASE32, prefix='dt0s16.', suffix='.' + made_up('dt3b', 64, BASE32))} expires in May",
        ),
        innocent=("Tokens begin with dt0c01. and have two more parts, the public and the private one.",),
    ),
    Credential(
        kind="EasyPost key",
        texts=(
            f'easypost.api_key = "{word("ez1", 54, prefix="EZAK")}"',
            f"the production key of EasyPost {word('ez2', 54, prefix='EZAK')} and the test one {made_up('ez3', 3)}...",
        ),
    ),
    Credential(
        kind="Flutterwave secret key",
        texts=(
            f"FLW_SECRET_KEY={word('flw1', 32, HEX, prefix='FLWSECK-', suffix='-X')}",
            f"const flw = new Flutterwave('FLWPUBK-{made_up('flwp', 32, HEX)}-X', '{word('flw2', 32, HEX, prefix='FLWSECK-', suffix='-X')}');",
        ),
    ),
    Credential(
        kind="Frame.io token",
        texts=(
            f"FRAMEIO_TOKEN={word('fio1', 64, URL_SAFE, prefix='fio-u-')}",
            f"FrameioClient('{word('fio2', 64, URL_SAFE, prefix='fio-u-')}')",
        ),
    ),
    Credential(
        kind="Freshdesk key",
        texts=(
            f"curl -u {word('fd1', 20)}:X https://kelp.freshdesk.com/api/v2/tickets",
            f"FRESHDESK_API_KEY={word('fd2', 20)}",
        ),
    ),
    Credential(
        kind="GoCardless token",
        texts=(
            f"GC_ACCESS_TOKEN={word('gc1', 40, URL_SAFE, prefix='live_')}",
            f"gocardless_pro.Client(access_token='{word('gc2', 40, URL_SAFE, prefix='live_')}', environment='live')",
        ),
        innocent=("live_reload_enabled_for_all_the_templates_here = False",),
    ),
    Credential(
        kind="Gitea token",
        texts=(
            f"git clone https://oauth2:{word('gt1', 40, HEX)}@git.kelp.example/infra/host.git",
            f"curl -H 'Authorization: token {word('gt2', 40, HEX)}' https://git.kelp.example/api/v1/user",
            f"GITEA_TOKEN={word('gt3', 40, HEX)} tea pr list",
        ),
        innocent=("git checkout 9f1c3a7be20d4c58a1736e9b02df4481c6e7a950 fixes it",),
    ),
    Credential(
        kind="Harness token",
        texts=(
            f"x-api-key: {word('hn1', 22, URL_SAFE, prefix='pat.', suffix='.' + made_up('hn1b', 24, HEX) + '.' + made_up('hn1c', 20))}",
            f"HARNESS_PLATFORM_API_KEY={word('hn2', 22, URL_SAFE, prefix='pat.', suffix='.' + made_up('hn2b', 24, HEX) + '.' + made_up('hn2c', 20))}",
        ),
    ),
    Credential(
        kind="42 API secret",
        texts=(
            f"FT_CLIENT_SECRET={word('ft1', 64, HEX, prefix='s-s4t2ud-')}",
            f"mein Secret bei 42: {word('ft2', 64, HEX, prefix='s-s4t2ud-')}",
        ),
    ),
    Credential(
        kind="LaunchDarkly key",
        texts=(
            f"LAUNCHDARKLY_SDK_KEY={marked('sdk-' + uuid('ld1'))}",
            f'ldclient.set_config(Config("{marked("sdk-" + uuid("ld2"))}"))',
            f"curl -H 'Authorization: {marked('api-' + uuid('ld3'))}' https://app.launchdarkly.com/api/v2/flags",
        ),
        innocent=("The environment 3f0c6a52-6e0e-4a4d-9a53-2d6f0c1a7b11 has two flags.",),
    ),
    Credential(
        kind="Lob key",
        texts=(
            f"LOB_API_KEY={word('lob1', 35, HEX, prefix='live_')}",
            f"curl https://api.lob.com/v1/letters -u {word('lob2', 35, HEX, prefix='test_')}:",
        ),
    ),
    Credential(
        kind="Mattermost token",
        texts=(
            f"MM_ACCESSTOKEN={word('mm1', 26, LOWER)}",
            f"curl -i -H 'Authorization: Bearer {word('mm2', 26, LOWER)}' https://chat.kelp.example/api/v4/users/me",
            f"https://chat.kelp.example/hooks/{word('mm3', 26, LOWER)} nimmt die Alarme an",
        ),
    ),
    Credential(
        kind="OpenShift token",
        texts=(
            f"oc login --token={word('os1', 43, URL_SAFE, prefix='sha256~')} --server=https://api.kelp.example:6443",
            f"log in with {word('os2', 43, URL_SAFE, prefix='sha256~')} before noon",
        ),
        innocent=("sha256:4f53cda18c2baa0c0354bb5f9a3ecbe5ed12ab4d8e11ba873c2f11161202b945 is the digest.",),
    ),
    Credential(
        kind="Octopus Deploy key",
        texts=(
            f"octo create-release --apiKey {word('oc1', 26, UPPER, prefix='API-')} --project kelp",
            f"X-Octopus-ApiKey: {word('oc2', 26, UPPER, prefix='API-')}",
            f"OCTOPUS_CLI_API_KEY={word('oc3', 26, UPPER, prefix='API-')}",
        ),
        innocent=("API-FIRST-DESIGN-GUIDELINES-2026 is the page.",),
    ),
    Credential(
        kind="Prefect key",
        texts=(
            f"prefect cloud login -k {word('pf1', 36, prefix='pnu_')}",
            f"PREFECT_API_KEY={word('pf2', 36, prefix='pnb_')}",
            f"Mein Prefect-Key lautet {word('pf3', 36, prefix='pnu_')}.",
        ),
    ),
    Credential(
        kind="ReadMe key",
        texts=(
            f"npx rdme openapi --key={word('rd1', 70, LOWER, prefix='rdme_')}",
            f"README_API_KEY: {word('rd2', 70, LOWER, prefix='rdme_')}",
        ),
    ),
    Credential(
        kind="RapidAPI key",
        texts=(
            f"'X-RapidAPI-Key': '{word('ra1', 10, LOWER, suffix='msh' + made_up('ra1b', 15, LOWER) + 'p1' + made_up('ra1c', 6, HEX) + 'jsn' + made_up('ra1d', 12, LOWER))}'",
            f"RAPIDAPI_KEY={word('ra2', 10, LOWER, suffix='msh' + made_up('ra2b', 15, LOWER) + 'p1' + made_up('ra2c', 6, HEX) + 'jsn' + made_up('ra2d', 12, LOWER))}",
        ),
    ),
    Credential(
        kind="Sidekiq Pro credentials",
        texts=(
            f"BUNDLE_GEMS__CONTRIBSYS__COM={marked(made_up('sk1', 8, HEX) + ':' + made_up('sk1b', 8, HEX))}",
            f"source 'https://{made_up('sk2', 8, HEX)}:{word('sk2b', 8, HEX)}@gems.contribsys.com/'",
        ),
    ),
    Credential(
        kind="Scalingo token",
        texts=(
            f"scalingo login --api-token {word('sca1', 48, URL_SAFE, prefix='tk-us-')}",
            f"the deploy bot uses {word('sca2', 48, URL_SAFE, prefix='tk-us-')}",
        ),
    ),
    Credential(
        kind="Shippo token",
        texts=(
            f"Authorization: ShippoToken {word('shp1', 40, HEX, prefix='shippo_live_')}",
            f"shippo.config.api_key = '{word('shp2', 40, HEX, prefix='shippo_test_')}'",
        ),
    ),
    Credential(
        kind="Sumo Logic key",
        texts=(
            f"accessid = su{made_up('sui', 12)}\naccesskey = {word('su1', 64)}",
            f"SUMOLOGIC_ACCESSKEY={word('su2', 64)}",
            f"-Vsumo.accessid=su{made_up('sui3', 12)} -Vsumo.accesskey={word('su3', 64)}",
        ),
    ),
    Credential(
        kind="Typeform token",
        texts=(
            f"TYPEFORM_TOKEN={word('tf1', 59, URL_SAFE, prefix='tfp_')}",
            f"the forms come with {word('tf2', 59, URL_SAFE, prefix='tfp_')} from the API",
        ),
    ),
    Credential(
        kind="Yandex Cloud key",
        texts=(
            f"Authorization: Api-Key {word('yc1', 35, URL_SAFE, prefix='AQVN')}",
            f"YANDEX_API_KEY={word('yc2', 35, URL_SAFE, prefix='AQVN')}",
            f"YC_TOKEN={word('yc3', 60, URL_SAFE, prefix='t1.9euel', suffix='.' + made_up('yc3b', 86, URL_SAFE))}",
        ),
    ),
    Credential(
        kind="Zapier hook",
        texts=(
            f"curl -X POST https://hooks.zapier.com/hooks/catch/4821937/{word('zap1', 7, LOWER)}/ -d @order.json",
            f"ZAPIER_WEBHOOK=https://hooks.zapier.com/hooks/catch/4821937/{word('zap2', 7, LOWER)}",
        ),
        innocent=("See https://zapier.com/help/create/code-webhooks for the steps.",),
    ),
    Credential(
        kind="IFTTT key",
        texts=(
            f"https://maker.ifttt.com/trigger/door_open/with/key/{word('if1', 22, URL_SAFE)}",
            f"IFTTT_KEY={word('if2', 43, URL_SAFE)}",
        ),
    ),
    Credential(
        kind="Mailjet secret",
        texts=(
            f'curl --user "{made_up("mj", 32, HEX)}:{word("mj1", 32, HEX)}" https://api.mailjet.com/v3.1/send',
            f"MJ_APIKEY_PRIVATE={word('mj2', 32, HEX)}",
            f"Mailjet(auth=('{made_up('mj3a', 32, HEX)}', '{word('mj3', 32, HEX)}'), version='v3.1')",
        ),
    ),
    Credential(
        kind="Vonage secret",
        texts=(
            f"client = vonage.Client(key='{made_up('vk', 8, HEX)}', secret='{word('vo1', 16)}')",
            f"https://rest.nexmo.com/sms/json?api_key={made_up('vk2', 8, HEX)}&api_secret={word('vo2', 16)}&to=49170",
            f"VONAGE_API_SECRET={word('vo3', 16)}",
        ),
    ),
    Credential(
        kind="Pushover token",
        texts=(
            f"curl -s -F token={word('pu1', 30, LOWER)} -F user={made_up('puu', 30, LOWER)} https://api.pushover.net/1/messages.json",
            f"pushover:\n  api_token: {word('pu2', 30, LOWER)}",
        ),
    ),
    Credential(
        kind="Pushbullet token",
        texts=(
            f"Access-Token: {word('pb1', 32, prefix='o.')}",
            f"PUSHBULLET_TOKEN={word('pb2', 32, prefix='o.')}",
        ),
    ),
    Credential(
        kind="OneSignal key",
        texts=(
            f"ONESIGNAL_REST_API_KEY={word('on1', 104, BASE32.lower(), prefix='os_v2_app_')}",
            f"Authorization: Key {word('on2', 104, BASE32.lower(), prefix='os_v2_app_')}",
        ),
    ),
    Credential(
        kind="Ably key",
        texts=(
            f"ABLY_API_KEY={made_up('ab', 6)}.{made_up('abk', 6)}:{word('ab1', 43, URL_SAFE)}",
            f'new Ably.Realtime({{ key: "{made_up("abc", 6)}.{made_up("abck", 6)}:{word("ab2", 43, URL_SAFE)}" }})',
        ),
    ),
    Credential(
        kind="Pusher secret",
        texts=(
            f"PUSHER_APP_ID=183920\nPUSHER_APP_KEY={made_up('pshk', 20, HEX)}\nPUSHER_APP_SECRET={word('psh1', 20, HEX)}",
            f"new Pusher({{ appId: '183920', key: '{made_up('pshk2', 20, HEX)}', secret: '{word('psh2', 20, HEX)}' }})",
        ),
    ),
    Credential(
        kind="LiveKit secret",
        texts=(
            f"keys:\n  API{made_up('lkk', 12)}: {word('lk1', 43)}",
            f"LIVEKIT_API_SECRET={word('lk2', 43)}",
            f"lk token create --api-key API{made_up('lkk3', 12)} --api-secret {word('lk3', 43)} --join",
        ),
    ),
    Credential(
        kind="Deepgram key",
        texts=(
            f"Authorization: Token {word('dg1', 40, HEX)}",
            f"DEEPGRAM_API_KEY={word('dg2', 40, HEX)}",
            f"deepgram = DeepgramClient('{word('dg3', 40, HEX)}')",
        ),
    ),
    Credential(
        kind="AssemblyAI key",
        texts=(
            f"aai.settings.api_key = '{word('aai1', 32, HEX)}'",
            f"ASSEMBLYAI_API_KEY={word('aai2', 32, HEX)}",
        ),
    ),
    Credential(
        kind="Jina key",
        texts=(
            f"JINA_API_KEY={word('ji1', 60, URL_SAFE, prefix='jina_')}",
            f"jina key for the embeddings: {word('ji2', 60, URL_SAFE, prefix='jina_')}",
        ),
        innocent=("jina_embeddings_v3_base_model_for_long_documents_in_english is the model.",),
    ),
    Credential(
        kind="Cerebras key",
        texts=(
            f"CEREBRAS_API_KEY={word('ce1', 48, LOWER, prefix='csk-')}",
            f"try {word('ce2', 48, LOWER, prefix='csk-')}, it is the fast one",
        ),
    ),
    Credential(
        kind="RunPod key",
        texts=(
            f"runpod.api_key = '{word('rp1', 46, UPPER, prefix='rpa_')}'",
            f"runpodctl config --apiKey {word('rp2', 46, UPPER, prefix='rpa_')}",
        ),
    ),
    Credential(
        kind="Modal token",
        texts=(
            f"modal token set --token-id ak-{made_up('moi', 22)} --token-secret {word('mo1', 22, prefix='as-')}",
            f"MODAL_TOKEN_SECRET={word('mo2', 22, prefix='as-')}",
        ),
    ),
    Credential(
        kind="LlamaCloud key",
        texts=(
            f"LLAMA_CLOUD_API_KEY={word('llx1', 48, prefix='llx-')}",
            f"LlamaParse('{word('llx2', 48, prefix='llx-')}', result_type='markdown')",
        ),
    ),
    Credential(
        kind="E2B key",
        texts=(
            f"E2B_API_KEY={word('e2b1', 40, HEX, prefix='e2b_')}",
            f"the sandbox wants {word('e2b2', 40, HEX, prefix='e2b_')}",
        ),
    ),
    Credential(
        kind="Apify token",
        texts=(
            f"https://api.apify.com/v2/acts/kelp~crawl/runs?token={word('ap1', 36, prefix='apify_api_')}",
            f"client = ApifyClient('{word('ap2', 36, prefix='apify_api_')}')",
        ),
        innocent=("apify_api_client_settings_are_documented_there",),
    ),
    Credential(
        kind="Browserbase key",
        texts=(
            f"BROWSERBASE_API_KEY={word('bb1', 27, URL_SAFE, prefix='bb_live_')}",
            f"wss://connect.browserbase.com?apiKey={word('bb2', 27, URL_SAFE, prefix='bb_live_')}",
        ),
    ),
    Credential(
        kind="Mem0 key",
        texts=(
            f"MemoryClient(api_key='{word('m01', 40, prefix='m0-')}')",
            f"MEM0_API_KEY={word('m02', 40, prefix='m0-')}",
        ),
    ),
    Credential(
        kind="Backblaze application key",
        texts=(
            f"b2 account authorize 003{made_up('b2i', 22, HEX)} {word('b21', 27, BASE64, prefix='K003')}",
            f"B2_APPLICATION_KEY={word('b22', 27, BASE64, prefix='K003')}",
            f"restic: export B2_ACCOUNT_KEY='{word('b23', 27, BASE64, prefix='K003')}'",
        ),
    ),
    Credential(
        kind="Tigris secret",
        texts=(
            f"aws configure set aws_secret_access_key {word('ti1', 64, prefix='tsec_')} --profile tigris",
            f"the bucket's secret is {word('ti2', 64, prefix='tsec_')}",
        ),
    ),
    Credential(
        kind="Vultr key",
        texts=(
            f"VULTR_API_KEY={word('vu1', 36, UPPER)}",
            f'curl "https://api.vultr.com/v2/account" -H "Authorization: Bearer {word("vu2", 36, UPPER)}"',
        ),
    ),
    Credential(
        kind="UpCloud token",
        texts=(
            f"UPCLOUD_TOKEN={word('uc1', 26, BASE32, prefix='ucat_')}",
            f"upctl account login --with-token {word('uc2', 26, BASE32, prefix='ucat_')}",
        ),
    ),
    Credential(
        kind="Exoscale secret",
        texts=(
            f"EXOSCALE_API_KEY=EXO{made_up('exi', 24, HEX)}\nEXOSCALE_API_SECRET={word('ex1', 43, URL_SAFE)}",
            f'key = "EXO{made_up("exi2", 24, HEX)}"\nsecret = "{word("ex2", 43, URL_SAFE)}"',
        ),
    ),
    Credential(
        kind="Upstash token",
        texts=(
            f'UPSTASH_REDIS_REST_TOKEN="{word("up1", 56, WORD, prefix="AX", suffix="==")}"',
            f"new Redis({{ url: 'https://apt-kelp-31872.upstash.io', token: '{word('up2', 56, WORD, prefix='AX', suffix='==')}' }})",
        ),
    ),
    Credential(
        kind="Convex deploy key",
        texts=(
            f"CONVEX_DEPLOY_KEY={marked('prod:brave-otter-118|' + made_up('cx1', 80, BASE64) + '==')}",
            f"convex deploy key is {marked('prod:brave-otter-118|' + made_up('cx2', 80, BASE64) + '==')}",
        ),
    ),
    Credential(
        kind="Xata key",
        texts=(
            f"XATA_API_KEY={word('xa1', 32, prefix='xau_')}",
            f"xata auth login --api-key {word('xa2', 32, prefix='xau_')}",
        ),
    ),
    Credential(
        kind="Fauna secret",
        texts=(
            f"FAUNA_SECRET={word('fa1', 37, URL_SAFE, prefix='fnA')}",
            f"new faunadb.Client({{ secret: '{word('fa2', 37, URL_SAFE, prefix='fnA')}' }})",
        ),
    ),
    Credential(
        kind="Appwrite key",
        texts=(
            f"X-Appwrite-Key: {word('aw1', 256, HEX)}",
            f".setKey('{word('aw2', 256, HEX, prefix='standard_')}')",
        ),
    ),
    Credential(
        kind="Ghost admin key",
        texts=(
            f"GHOST_ADMIN_API_KEY={marked(made_up('gh1', 24, HEX) + ':' + made_up('gh1b', 64, HEX))}",
            f"new GhostAdminAPI({{ url: 'https://blog.kelp.example', key: '{marked(made_up('gh2', 24, HEX) + ':' + made_up('gh2b', 64, HEX))}', version: 'v5' }})",
        ),
    ),
    Credential(
        kind="Sanity token",
        texts=(
            f"SANITY_API_TOKEN={word('sa1', 178, prefix='sk')}",
            f"createClient({{ projectId: 'k3lp', token: '{word('sa2', 178, prefix='sk')}', useCdn: false }})",
        ),
    ),
    Credential(
        kind="Trello token",
        texts=(
            f"https://api.trello.com/1/members/me?key={made_up('trk', 32, HEX)}&token={word('tr1', 72, WORD, prefix='ATTA')}",
            f"TRELLO_TOKEN={word('tr2', 72, WORD, prefix='ATTA')}",
            f"Trello sagt, mein Token ist {word('tr3', 72, WORD, prefix='ATTA')}",
        ),
    ),
    Credential(
        kind="ClickUp token",
        texts=(
            f"Authorization: {word('cu1', 32, UPPER, prefix='pk_4821937_')}",
            f"CLICKUP_API_TOKEN={word('cu2', 32, UPPER, prefix='pk_4821937_')}",
        ),
    ),
    Credential(
        kind="Todoist token",
        texts=(
            f"api = TodoistAPI('{word('to1', 40, HEX)}')",
            f"todoist --token {word('to2', 40, HEX)} list",
            f"TODOIST_API_TOKEN={word('to3', 40, HEX)}",
        ),
    ),
    Credential(
        kind="Paddle key",
        texts=(
            f"PADDLE_API_KEY={word('pd1', 26, LOWER, prefix='pdl_live_apikey_', suffix='_' + made_up('pd1b', 22) + '_' + made_up('pd1c', 3))}",
            f"Bearer {word('pd2', 26, LOWER, prefix='pdl_sdbx_apikey_', suffix='_' + made_up('pd2b', 22) + '_' + made_up('pd2c', 3))}",
        ),
    ),
    Credential(
        kind="Mollie key",
        texts=(
            f"mollie_client.set_api_key('{word('ml1', 30, prefix='live_')}')",
            f"MOLLIE_KEY={word('ml2', 30, prefix='live_')}",
        ),
    ),
    Credential(
        kind="Binance secret",
        texts=(
            f"client = Client('{made_up('bik', 64)}', api_secret='{word('bi1', 64)}')",
            f"BINANCE_SECRET_KEY={word('bi2', 64)}",
            f"币安的密钥是{word('bi3', 64)}",
        ),
    ),
    Credential(
        kind="Kraken private key",
        texts=(
            f"KRAKEN_API_SECRET={word('kr1', 86, BASE64, suffix='==')}",
            f'{{"apiKey": "{made_up("krk", 56, BASE64)}", "privateKey": "{word("kr2", 86, BASE64, suffix="==")}"}}',
        ),
    ),
    Credential(
        kind="Infura and Alchemy key",
        texts=(
            f"RPC_URL=https://mainnet.infura.io/v3/{word('in1', 32, HEX)}",
            f"https://eth-mainnet.g.alchemy.com/v2/{word('al1', 32, URL_SAFE)}",
            f"ALCHEMY_API_KEY={word('al2', 32, URL_SAFE)}",
        ),
    ),
    Credential(
        kind="RADIUS shared secret",
        texts=(
            f"client ap-floor2 {{\n  ipaddr = 10.0.3.17\n  secret = {word('rad1', 16)}\n}}",
            f"radius-server host 10.0.3.2 auth-port 1812 key {word('rad2', 14)}",
        ),
    ),
    Credential(
        kind="app-specific password",
        texts=(
            f"xcrun notarytool store-credentials --apple-id mira@kelp.example --password {marked('-'.join(made_up(f'as{at}', 4, LOWER[:26]) for at in range(4)))}",
            f"Das App-Passwort für Gmail ist {marked(' '.join(made_up(f'ag{at}', 4, LOWER[:26]) for at in range(4)))}",
            f"BLUESKY_APP_PASSWORD={marked('-'.join(made_up(f'bs{at}', 4, LOWER) for at in range(4)))}",
        ),
    ),
    Credential(
        kind="password in PowerShell",
        texts=(
            f"$sec = ConvertTo-SecureString '{word('ps1', 13)}' -AsPlainText -Force",
            f"net user deploy {word('ps2', 12)} /add",
            f"cmdkey /add:srv12 /user:kelp\\deploy /pass:{word('ps3', 12)}",
        ),
    ),
    Credential(
        kind="password in a tool's option",
        texts=(
            f"curl -u mira:{word('op1', 12)} https://kelp.example/export.csv",
            f"smbclient //nas/share -U mira%{word('op2', 12)}",
            f"xfreerdp /u:mira /p:{word('op3', 12)} /v:10.0.0.7",
            f"ipmitool -I lanplus -H 10.0.0.9 -U admin -P {word('op4', 12)} power status",
            f"rabbitmqctl add_user kelp {word('op5', 12)}",
        ),
        innocent=("curl -u user:password https://example.com shows how it is done",),
    ),
    Credential(
        kind="Fernet key",
        texts=(
            f"AIRFLOW__CORE__FERNET_KEY={word('fe1', 43, URL_SAFE, suffix='=')}",
            f"cipher = Fernet(b'{word('fe2', 43, URL_SAFE, suffix='=')}')",
        ),
    ),
    Credential(
        kind="ASP.NET machine key",
        texts=(
            f'<machineKey validationKey="{word("mk1", 128, "0123456789ABCDEF")}" validation="HMACSHA256" decryption="AES" />',
            f'<machineKey decryptionKey="{word("mk2", 64, "0123456789ABCDEF")}" decryption="AES" />',
        ),
    ),
    Credential(
        kind="Jenkins token",
        texts=(
            f"curl -u mira:{word('je1', 32, HEX, prefix='11')} https://ci.kelp.example/job/host/build",
            f"JENKINS_API_TOKEN={word('je2', 32, HEX, prefix='11')}",
            f"java -jar jenkins-cli.jar -s https://ci.kelp.example -auth mira:{word('je3', 32, HEX, prefix='11')} who-am-i",
        ),
    ),
    Credential(
        kind="Keycloak secret",
        texts=(
            f'{{"realm": "kelp", "resource": "api", "credentials": {{"secret": "{word("kc1", 32)}"}}}}',
            f"grant_type=client_credentials&client_id=api&client_secret={word('kc2', 32)}",
            f"KEYCLOAK_ADMIN_PASSWORD={word('kc3', 14)}",
        ),
    ),
    Credential(
        kind="signed address",
        texts=(
            f"https://kelp.s3.amazonaws.com/a.zip?X-Amz-Algorithm=AWS4-HMAC-SHA256&X-Amz-Expires=3600&X-Amz-Signature={word('xa1s', 64, HEX)}",
            f"https://storage.googleapis.com/kelp/a.zip?X-Goog-Algorithm=GOOG4-RSA-SHA256&X-Goog-Signature={word('xg1s', 512, HEX)}",
        ),
    ),
    Credential(
        kind="private calendar address",
        texts=(
            f"https://calendar.google.com/calendar/ical/mira%40kelp.example/private-{word('ic1', 32, HEX)}/basic.ics",
            f"Mein Kalender: https://calendar.google.com/calendar/ical/mira%40kelp.example/private-{word('ic2', 32, HEX)}/basic.ics",
        ),
    ),
    Credential(
        kind="chat hooks",
        texts=(
            f"https://chat.googleapis.com/v1/spaces/AAAAkelp/messages?key=abc&token={word('gchat', 43, URL_SAFE)}",
            f"https://rocket.kelp.example/hooks/64f1c0{made_up('rch', 11)}/{word('rc1', 43)}",
            f"https://kelp.zoom.us/j/84213377120?pwd={word('zm1', 32)}",
        ),
    ),
    Credential(
        kind="Opsgenie key",
        texts=(
            f"Authorization: GenieKey {marked(uuid('og1'))}",
            f"opsgenie_api_key: {marked(uuid('og2'))}",
        ),
    ),
    Credential(
        kind="private JWK",
        texts=(
            f'{{"kty": "EC", "crv": "P-256", "x": "{made_up("jwx", 43, URL_SAFE)}", "y": "{made_up("jwy", 43, URL_SAFE)}", "d": "{word("jwk1", 43, URL_SAFE)}"}}',
            f'{{"kty":"oct","alg":"HS256","k":"{word("jwk2", 43, URL_SAFE)}"}}',
        ),
    ),
    Credential(
        kind="PuTTY private key",
        texts=(
            f"PuTTY-User-Key-File-3: ssh-ed25519\nEncryption: none\nComment: mira\nPublic-Lines: 1\nAAAAC3NzaC1lZDI1NTE5\nPrivate-Lines: 1\n{word('ppk1', 48, BASE64)}\nPrivate-MAC: {made_up('ppkm', 64, HEX)}",
            f"Private-Lines: 1\n{word('ppk2', 48, BASE64)}\nPrivate-MAC: {made_up('ppkm2', 64, HEX)}",
        ),
    ),
    Credential(
        kind="DNS keys",
        texts=(
            f'key "rndc-key" {{\n  algorithm hmac-sha256;\n  secret "{word("tsig1", 43, BASE64, suffix="=")}";\n}};',
            f"Private-key-format: v1.3\nAlgorithm: 13 (ECDSAP256SHA256)\nPrivateKey: {word('dnssec1', 43, BASE64, suffix='=')}",
            f"nsupdate -y hmac-sha256:kelp-key:{word('tsig2', 43, BASE64, suffix='=')}",
        ),
    ),
    Credential(
        kind="Nostr key",
        texts=(
            f"my nostr key is {word('ns1', 58, BECH32, prefix='nsec1')} keep it safe",
            f'{{"privkey": "{word("ns2", 58, BECH32, prefix="nsec1")}"}}',
        ),
    ),
    Credential(
        kind="Matrix access token",
        texts=(
            f"access_token: {word('mx1', 12, prefix='syt_', suffix='_' + made_up('mx1b', 20) + '_' + made_up('mx1c', 6))}",
            f"curl 'https://matrix.kelp.example/_matrix/client/v3/sync?access_token={word('mx2', 12, prefix='syt_', suffix='_' + made_up('mx2b', 20) + '_' + made_up('mx2c', 6))}'",
            f"the bot logs in with {word('mx3', 12, prefix='syt_', suffix='_' + made_up('mx3b', 20) + '_' + made_up('mx3c', 6))}",
        ),
        innocent=("syt_ begins the tokens of Synapse.",),
    ),
    Credential(
        kind="IRC services password",
        texts=(
            f"/msg NickServ IDENTIFY mira {word('irc1', 12)}",
            f"/msg NickServ identify {word('irc2', 14)}",
        ),
    ),
    Credential(
        kind="Mastodon token",
        texts=(
            f"MASTODON_ACCESS_TOKEN={word('ma1', 43, URL_SAFE)}",
            f"Mastodon(access_token='{word('ma2', 43, URL_SAFE)}', api_base_url='https://fosstodon.org')",
        ),
    ),
    Credential(
        kind="Reddit secret",
        texts=(
            f"praw.Reddit(client_id='{made_up('rdi', 22)}', client_secret='{word('red1', 30, URL_SAFE)}', user_agent='kelp')",
            f"REDDIT_CLIENT_SECRET={word('red2', 30, URL_SAFE)}",
        ),
    ),
    Credential(
        kind="Steam and Riot key",
        texts=(
            f"https://api.steampowered.com/ISteamUser/GetPlayerSummaries/v2/?key={word('st1', 32, '0123456789ABCDEF')}&steamids=7656",
            f"X-Riot-Token: {marked('RGAPI-' + uuid('ri1'))}",
            f"the Riot dev key of today: {marked('RGAPI-' + uuid('ri2'))}",
        ),
    ),
    Credential(
        kind="stream key",
        texts=(
            f"ffmpeg -i in.mp4 -f flv rtmp://a.rtmp.youtube.com/live2/{marked('-'.join(made_up(f'yt{at}', 4, LOWER) for at in range(5)))}",
            f"Stream key: {marked('-'.join(made_up(f'yu{at}', 4, LOWER) for at in range(5)))}",
        ),
    ),
    Credential(
        kind="RCON password",
        texts=(
            f"rcon.password={word('rc9', 10)}\nenable-rcon=true",
            f"mcrcon -H 10.0.0.4 -p {word('rc10', 12)} 'list'",
        ),
    ),
    Credential(
        kind="weather and map key",
        texts=(
            f"https://api.openweathermap.org/data/2.5/weather?q=Kiel&appid={word('ow1', 32, HEX)}",
            f"OPENWEATHER_API_KEY={word('ow2', 32, HEX)}",
            f"https://api.tomtom.com/search/2/geocode/kiel.json?key={word('tt1', 32)}",
        ),
    ),
    Credential(
        kind="MaxMind license key",
        texts=(
            f"AccountID 482193\nLicenseKey {word('mmk1', 29, suffix='_mmk', prefix=made_up('mmk1p', 6) + '_')}",
            f"GEOIPUPDATE_LICENSE_KEY={word('mmk2', 29, suffix='_mmk', prefix=made_up('mmk2p', 6) + '_')}",
        ),
    ),
    Credential(
        kind="VirusTotal and Shodan key",
        texts=(
            f"x-apikey: {word('vt1', 64, HEX)}",
            f"VT_API_KEY={word('vt2', 64, HEX)}",
            f"shodan init {word('sh1', 32)}",
            f"hibp-api-key: {word('hibp1', 32, HEX)}",
        ),
    ),
    Credential(
        kind="CrowdStrike secret",
        texts=(
            f"FALCON_CLIENT_ID={made_up('fci', 32, HEX)}\nFALCON_CLIENT_SECRET={word('cs1', 40)}",
            f"falcon = APIHarnessV2(client_id='{made_up('fci2', 32, HEX)}', client_secret='{word('cs2', 40)}')",
        ),
    ),
    Credential(
        kind="Strava secret and refresh token",
        texts=(
            f"curl -X POST https://www.strava.com/oauth/token -d client_id=48219 -d client_secret={word('str1', 40, HEX)} -d refresh_token=x",
            f'{{"token_type": "Bearer", "expires_in": 21600, "refresh_token": "{word("str2", 40, HEX)}"}}',
        ),
    ),
    Credential(
        kind="home devices",
        texts=(
            f"tuya:\n  device_id: bf{made_up('tyd', 18, HEX)}\n  local_key: {word('ty1', 16, WORD)}",
            f"the token of the vacuum is {word('mi1', 32, HEX)} (miio)",
            f"hue bridge username/key: {word('hue1', 40)}",
        ),
    ),
    Credential(
        kind="door and alarm codes",
        texts=(
            f"The alarm code of the office is {word('door1', 6, '123456789')}, disarm it before eight.",
            f"Der Code für die Garage ist {word('door2', 5, '123456789')}#",
            f"门禁密码是{word('door3', 6, '123456789')}",
        ),
        innocent=("The error code of the run is 500214.",),
    ),
    Credential(
        kind="password told in passing, English",
        texts=(
            f"you can get into the wiki as admin with {word('pe1', 10, WORD)} as the password",
            f"wifi here: KelpGuest, pass: {word('pe2', 9, WORD)}",
            f"login is mira / {word('pe3', 11, WORD)} on staging",
            f"we changed the db password from the default to {word('pe4', 12, WORD)} yesterday",
        ),
        innocent=("we changed the password of the default user yesterday",),
    ),
    Credential(
        kind="password told in passing, German",
        texts=(
            f"ins Wiki kommst du als admin mit {word('pg1', 10, WORD)} als Passwort",
            f"WLAN: KelpGast, Kennwort: {word('pg2', 9, WORD)}",
            f"Zugangsdaten für Staging: mira / {word('pg3', 11, WORD)}",
        ),
        innocent=("das Passwort haben wir gestern zurückgesetzt",),
    ),
    Credential(
        kind="password told in passing, Chinese",
        texts=(
            f"登录名admin，口令是{word('pc1', 10, WORD)}",
            f"服务器的密码改成{word('pc2', 12, WORD)}了",
            f"无线网密码：{word('pc3', 9, WORD)}",
        ),
        innocent=("密码已经改了，请联系管理员。",),
    ),
)
