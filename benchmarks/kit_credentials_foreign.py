"""Credentials by an author who had not seen the rules; the rules were improved on them later."""

from kit_credentials import Credential

FORMATS = (
    Credential(
        kind="AWS access key id",
        texts=(
            "the deploy user's key id is ⟦AKIA"
            + "6NBQ4XDRDLSB7VTN⟧, can you check in CloudTrail when it was last used?",
            "[profile billing-prod]\nregion = eu-central-1\n"
            + "aws_access_key_id = ⟦AKIA"
            + "DAOO6DKUYADIUNNQ⟧\n"
            + "output = json",
            "botocore.exceptions.ClientError: An error occurred (InvalidAccessKeyId) when calling the PutObject"
            + " operation: the key ⟦ASIA"
            + "F34OTCOWBFG5L2ZD⟧ you provided does not exist in our records.",
        ),
        innocent=(
            "The account 481920337715 has the role arn:aws:iam::481920337715:role/ci-deployer attached to insta"
            + "nce i-0f3a91c27be4d5520.",
        ),
    ),
    Credential(
        kind="AWS secret access key",
        texts=(
            "export AWS_SECRET_ACCESS_KEY=⟦+IjFx970C3/u9bRi9q5t" + "Lh2+0H599NPO0DDYQOhf⟧",
            "hier ist der Secret Key für den S3-Bucket, bitte in die Pipeline eintragen: ⟦/NKKfhx5ulWdr8RWaEmj"
            + "6i+wWYPpB5gnwmO9Wbd9⟧",
            's3 = boto3.client(\n    "s3",\n    aws_secret_access_key="⟦Eb3Cg+hMeg9ULfURX2/r'
            + 'FF5Xz7hDGuKzF+A/FOLW⟧",\n'
            + '    region_name="us-west-2",\n'
            + ")",
        ),
        innocent=("git checkout 43f17ee45a672980eef519c7cf1e9b2504eaecbf",),
    ),
    Credential(
        kind="AWS session token",
        texts=(
            "AWS_SESSION_TOKEN=⟦IQoJb3JpZ2luX2VjEcxPt/Hq57Bxutw2XznOU5SH"
            + "ETQ+WwczlZjkUSx3CrU5Yx4RaZNe6zwFS8rdVxeJsKsOMAQIk4A/fnXlL+sH1KD/T5GLV65nkmqoYm3ymH3GbhXVXuBjwcwBjP"
            + "gK6fEAXXI5L5ZYG3CuQ/CLSs2xvEX1Q1JyDOF9aPx9W9hsrzVWzBvwHHOXVvFRzS5U6DiuF4RUEuFH4l207qmPnZfbKSdsWd9d"
            + "webg/iNWdP00Nr2xQaceIdugSyi4njdhhBI8loJXcn0hqO/I+VyxjKe+k51OlSaeXxOE17YIu0tXapm887iXI8mlaY36oU2iqm"
            + "Pp/W+E0LVuOV3FBDHfJtLjT09Fx81JVzQHLCJPb5TRT87Bp+MgRlZJwCmvGbnQkZ==⟧",
            '{"Credentials": {"SessionToken": "⟦FwoGZXIvYXdzEGas8o9GfZjJVtUSpwy88MARFtnu'
            + "737z5nSE2wNvVHLcDXnsIMletlf79QuF8Ialc5AeBZrk7F1lmI/a7aCDCPWa90h+OOB3nPliGxecbn/8SSXRQjMkxtGca7sqNa"
            + "d8LkRjLy5Ow3YqeFW11CG+Dyr1xMCxumO08vunSUjtPotEzO2CTXASVw96zgm1AoxZeqlhQjpKMXKXNtXLjc4agIHe6eiY01fJ"
            + 'ue2sHCrswBnNUw0wHK557eZefgTstVpCgobBeeVgOdPTbYejUunC57xY5N4ae5nXaF7=⟧", "Expiration": "2026-04-18T'
            + '09:12:44+00:00"}}',
            "x-amz-security-token: ⟦IQoJb3JpZ2luX2VjEylXN2nVMlSbR+H6ppR/PN15"
            + "n+vbm54uXuxnrfXwWzSPXZCOqvHXDI/ulBbmpUaiePGoWbywoD0F9w/4wHrANdI6pOWZDgIVDr0Y5VFxgQsy22+KTjsu/bhaWF"
            + "9XEgdkzcDWAIQDtNhertFXgDH2/knAYU9BzYoirf48+wveJPr3s4yHXcLCQfelWs/MlmdCff8FItlqfR0tkWFpbd9d79JIgjgn"
            + "q70qlRULQCFuPOrM1n/jCMOqtES7nZdhlWNq4WIgtXHjkOxKt/gTYHTUmMdXJvCIwWTXwb/lwg00Fi1f/ikZm040oTInl8bd0R"
            + "9mbVg2I/Td5/NuH6dVdOYqPtA9EQ0iWDDsH9xnRr5V22ImYrf5sBNXoZ7cQkp8QTsedkNwJB+DxLh0bM4gg61oT8VdgD2IZO8K"
            + "KLC=⟧",
        ),
        innocent=("Session tokens from AssumeRole expire after one hour unless DurationSeconds is set.",),
    ),
    Credential(
        kind="GCP service account private key",
        texts=(
            '{\n  "type": "service_account",\n  "project_id": "orbital-lark-402311",\n'
            + '  "private_key": "-----BEGIN PRIVATE KEY-----\\n⟦MIIE'
            + "vQIBADANBgkqhkiG9w0BAQEFAASCBKcwggSjAgEAAoIBAQCrZT5cgG/pc+PV\\nJEeoFMh/jF0pO9agTl8jXnXq6bF0E9hXzs/"
            + "G5VgcYbd2t/DZUf7Py4iLetfmCFdK\\nabDpopCIZiwIApRRMX/kpIGehlNPhqt240gi9/C6kjknDTTx+ODr4B0QwQdP7F6+\\"
            + "n4CFi/DSAABlcAtCTEjtr7NGPZ6KOtX8EyQ4dTYFat26ThIOhzXNXyoH/g/PlXR8/\\nQRhgn80goAjCZaY6qmLIONIznc3Orj"
            + "ISIZ2wN2nLPkucyY76zeS5Rm6Ymp/UOmeJ\\nNcwjvSE4JvNRsJ9jOEqlAbypLcPr7u6NdcqbVrc+KGramfMaqG5Sb2luKMXVg"
            + "6rH\\nmdjFQM2RMmczKWPVuwkZFdlFYDEbRtl8JmhBZkgTRGB/CwRlxBqi6c84bCwm6vUs\\nYj6BurgJ0Mhzv04X7gunq1Vpk"
            + "Y3OyaPJs+OvZ0/MgJX2gwzX3x+pBvA5Ama4SKUe\\naTTodd75ThNyNo1wKdJ7Rvrgm1bO62r6S9HhcO8BkJNjsr1MHr+DtHmU"
            + "5invw6Pj\\nCQ3jiDR+GEXXUQ8R9xJJF/STJjY48+dQycnRp0o+YAGjmMm7c5f1ztvXV0AxEXlI\\nuaksDeG9jhO+xV+mPGUt"
            + "6e1jeF9KSEheSFE6iA6Tc2oKDk7RXe3s/aD6wVOXU8L5\\nNFEPfJRVY94cha/5UQvtnnn4+CqIXjtITCNXMIGR2bq0FBj5bks"
            + "D/iB3epo+4nmJ\\nNNlh8Y2Z1yRME6f9/jwrweZIBfnp5/+lBYTdbr3wm3YOcJ2knp1yGS3o0uwg2VYj\\nspvG6rf4l+F9E+N"
            + "eoqStUJ+L3PEjjz3VXs34aMPAqQPqNWAuYOKlDy8T7WWENe4p\\n+NS5g8twjlrnRz0tpLgAv7VCOGLeXXFyXD7STLGmWN2Nxk"
            + "De56oyL2HORvZwsgBV\\nMKpl+CEPikWJeCMpfBOY2kpko/0mtBn+yCgas32CI1cGj9pOk8y5XI7lZZERbhBh\\nojS5PAxOKf"
            + "CLaaIvBS9gpUVisJgaxUd7QM0vDifW4dHf2oeA8gdd8Us24tQBoD4C\\nuvrKDLqdua41OHwqfUFpiEBX2F209HMvGJr/K/iAI"
            + "+8Ki3424yAvmCl+yo5JVvPZ\\nJ3CFMExIr7cFvvp/7MtfWZ511J0f/Y+zwDOzt0sLMk0fqi9ZHzq5Vzdwc4GImwrI\\n1U3zB"
            + "cNMcLwEXo+g37plB+DLzrlI53N1RpV4IyI/BNRxvqldisdjEOPp1BFFd5m/\\nWIF9Fc77NYBK30ZhBqGBPivDRZobr+cFkhoe"
            + "jKMIYtrwZd3O65kTxZb6ohxE8uQl\\nh6WkD2rBjDmyef/Lr5lb/mXbyW2gn+DcsoN3KXjDFn+wT0Y6hr4PetiT4nzikfq+\\n"
            + "g5scqfzdeI1658yj9b3B9DTYLWxAuj59UODemBBIh+nFjnTlKAyWyXPLocufl/BQ\\ndqLSWTSJ2Hh+yRw0M8q++FIE6+Fd9gz"
            + "8U1lnmaJoUiJtvJUHlZeDe57LQ5501R1l\\nMGIxBg0YCwottMQRRl7HAQ+SBxDD0exL7Ky7Ue+ZEqX6tBlXWnanxLBSBnUErr"
            + 'g0\\neeeskPE04Ry1Dy7Ls0uykuO8⟧\\n-----END PRIVATE KEY-----\\n",\n'
            + '  "token_uri": "https://oauth2.googleapis.com/token"\n'
            + "}",
            'resource "kubernetes_secret" "gcp" {\n  data = {\n'
            + '    key = "-----BEGIN PRIVATE KEY-----\\n⟦MIIE'
            + "vQIBADANBgkqhkiG9w0BAQEFAASCBKcwggSjAgEAAoIBAQChdsIDP0zQJAah\\nn8rmOE4U0X8ZufQ/bnmLQ7V6g7+uC1f/vaB"
            + "lutjnuOWVM+CtVV0BgTs7WkPXDqmH\\nBrlzbA4BMpAujdOAJrFXQtNh6hCXRaJYfWM+x020bj2MyxUkh6KKOTISZR7VjeJe\\"
            + "nOwkbS9wqqsTbbCgKNIR9HeQ0YZNOpT184f8NDvgfFDBzJz75YkPmqIuIielq4MWa\\niibksoPiq/g1aZQzRgNHmEl37MOhTY"
            + "29PKzuvJnHwFgN5IgDucRu1/GrY48TKzmk\\nSy17NG/OQE60Hb/ncuRD2Vl8OkdpYMxhECugawCd8zuO8q4eiEyvt+jCo2DX6"
            + "+jY\\nWK6EnDGencclVetQ7CySTYxYYnM5URPqYHFdsfywlaqhqenquWCfZ8PiiF0yuT09\\nS2gdLZC0hcZkvIpidiCwvDOMG"
            + "pjp1bboW7C2iNNRLEmPIwPXF2MJHmRqlIgFR//x\\nLs4zU8vwZb4T0yrtm1UE2yLYVcgIxBvpLlYdIsRlr64Nu5bm5fhwF/J4"
            + "jcH35rwF\\nfjtyNzpgAECfomCq9SG1oHjZaOTvhYhCEIGB4nvRgzPDeUjaPsIBZR5X3PfiHJmf\\nsR2Wu7rAlBinIS8jhNTx"
            + "7/UspK2W/N8aPYkv7DbRk56uLqqUBaPnfVWUedMPzvH4\\noJ8ia//zCmU78ZZU/sw7JjveCIyegbVhsirvLdeYekWEP61n/oK"
            + "+ZMSNA/9rIW0B\\n5XF0OQ5MKdpyNLN/ovJqz3NoIvZDGNTNC7GS7aQNn2TTS61i0Rt78uVeTdq8h184\\nviclz49cZPU5Ttp"
            + "0mmBW6I+CivZFB0wp3RLgHqBCKSXZyAjtwducBuiveIgwTNeE\\n/U5+Xy8iLIKPsMsaabeRWSpYoZOQtFAB8jUnWSeJceL0W/"
            + "BZPoEt6aFrZORC/VA1\\nJ2RtLW/rjHKvqrTRNEEWgBHtqfAYsLLBXlVNoKFfk+WIwXHURgtoCbrBXqzxSHu2\\nCopegZ+HlK"
            + "rOPAUFFwWoTuSDPS8lbQAWivdi8I5sKjGqnRosV3J80muSHlWWAc/W\\nFBNg3+8pG6ueZdcgOOvLeKloqGaHkv0pip/r+aUf+"
            + "X+CQmKmS5B9cu4qtp8QBmT9\\np6TUwRju3gevmW2kJI263frARGIxejZSag1Iabdvbjr0ygrwTsfXllY/E2c4rGJl\\nDWrLJ"
            + "wNURqLkFQn+xP/x5gWE5TLHtpI9PRhDu68/0v2Zy9bj8O+AQMqy8cC93UMy\\nLhdsMUhiVf8f2XqBpJmGoPbKOtGwknICoL0n"
            + "OZqBpaxNqBOKsc8ODsefvLuW0iJK\\nUZ9LEcQqdQd53wt8IxmAyBFBA917Het8nsBc4mU9hfZ00ab5EVSRVLuDQKalW12e\\n"
            + "Uveu5yl3yTaGi/LhgV0jJZwyTeuPU2K1SZDb5a2wc3OthSJQWLXpMmW3OVFni5nW\\n9G9Tr1GPLMEZb9Y6jm7jPtWvKsikx5e"
            + "SEHahIX7QXhrYQZnR56mURgdQLPmRV33i\\n3jI0INoyj1G2BozjiChvc2b8x0zgHMEKGMkYkvrSwyFGVIi+zF2ZfL80slut11"
            + 'fA\\nqi30JChmqiw1XWuEodSFMwai⟧\\n-----END PRIVATE KEY-----\\n"\n'
            + "  }\n"
            + "}",
            'GOOGLE_PRIVATE_KEY="-----BEGIN PRIVATE KEY-----\\n⟦MIIE'
            + "vQIBADANBgkqhkiG9w0BAQEFAASCBKcwggSjAgEAAoIBAQCS7xbtfoMj0fxk\\nqES5jUUuDHWeboV14IJiNBrs2cXG5o+8P7p"
            + "OrxCB0dZokpZHb8uRzRw8gqDlG/FU\\nulyAm7EyKAUmYiQh9XdizNNCatJNk4mue/7wbXBz85txzKkrEpcASB8/jIS2XK/J\\"
            + "n6+x1GccOPy8VPCBrzxk7StHHjZrBVQyBB+Uhkyq517plc/aTxVshKBfE/ngC958n\\nt4xKEcLo42iRpZyfyoxDPVnHxBwJF3"
            + "8DogcaV0tKhjpAK0VwhUttCCv7+OgGuQaY\\n8BygTD98nhIemiqib2ajaxkZ+7NQWuDyC/UEwHkoP975XnLoZM5xA5Ug3mhqi"
            + "PtZ\\nOGkIleEHHEXvXdbDO73lkAXk3JXQu/HhAHkyx/5GBTDjzlozpisiJeWZm7mTvLOE\\nII2o/jpqGRcmYu/c7Py3ZtytK"
            + "VHX3xyZ1jvfX+hcjnNXRzEdDM/gtwooL/tEtA9j\\ncHIYV7YfsO8bQYfXe9TsKi5TVXmprjmY0yt25Z/HYHu9WlOOACRVRh1X"
            + "h8xBuIpt\\nEHy2rZh3H6BWpuq8cawavfdg3jFYVITCqVKJCpBvZBieyEYu3FEtBPYuJctpFi44\\neP9m7/H7EMoZiGUWPCnb"
            + "yrgI7/yl7aB5RNSXevoRoMA2fBxKOrlL6mNfAU5SLDnX\\n2X+tupWkgCGYtYSAs0yGAJxoAly+qcsBEFdOL+dwIxUsz7UkTgC"
            + "O/sa23oqsvhgj\\nFySguSmOPRbO1QQw/oXFaZ90+B4KMRrVYBmen/QelR2gRIh4mkloVLWvBzF2zndn\\nNgSteOO8CLJN9d3"
            + "sv6lKEHHlJBaKt07PlhBwqUote3Ry9UccbhqCjMd66/fc5441\\nX0gOqTZBL+c9sx8E9a3qENH46DT971AnGHANHkHuw9cmGU"
            + "cprMGxVFWAQeWn/5+m\\n75z100sT0233bRie9zpnkGkTO1tUpfUguaEtOkboiJCxyVP+hfMB6KWuWPTinisp\\np8hB/KtLuA"
            + "R7Crm7xo37rdXTaLKN+6EiutzHGIVtGd7T9Syv4w4FZq7A4snGY454\\nZJBbpEbgoQRGgjWtBAEW5rayTNVDy2w312ejG7t//"
            + "Y6xYKQqoD0OTB5E+7PsSg4I\\nepUCiZ02I8pMLimNInFncmydTd2z3qnfsefbC79y+ZFx9lD8cIEVCNTVK5R89Re5\\nkyozI"
            + "hGVyJrh+Le1j9+oCs7xjRXdsnAtuQJ4jPzlxzxWEFJ2+a4Bel6zQOxFKXN4\\ngwpMAnJpXE6oH7/oFW21uz2UmE359GTGfbxG"
            + "se/z+nT+Z6ExSoVv+NOpM+RKbjjm\\nI+qWuLO0GcR/wmCbrboLpOkqJo61gZGVfyo7V4bxDYnJj74oRPxi5PIxN+61Uklj\\n"
            + "tyPp4OQh7OW0hxGeqwZkp6xjlgxTTu+b27wO+e9AUfQ6vU5rgFWl1SfqaEe+ZZEh\\nlnr3aUqvpL+osIVLDzSEoXW2SpmiFSq"
            + "ELVT9CDy4ItWCI8CJsYWNclpgZyqomow4\\nLv4ba0KmBIb7Uo7svFSJkzLpHUXo4nZPiBFni7grHKNOIJk4HTyL6qSOjxyP+c"
            + 'QJ\\nOlHzduw0IKePSYGpIrsGutL8⟧\\n-----END PRIVATE KEY-----\\n"',
        ),
        innocent=(
            "gcloud iam service-accounts keys list --project orbital-lark-402311 --format='table(name, validAft"
            + "erTime)'",
        ),
    ),
    Credential(
        kind="Google API key",
        texts=(
            '<script async src="https://maps.googleapis.com/maps/api/js?key=⟦AIzaSyktfl4fLBuSeVp'
            + 'c3qxkRXq_Fbjn5IOeBIx⟧&callback=initMap"></script>',
            'const firebaseConfig = { apiKey: "⟦AIzaSyrCWEDzJdds2j8'
            + 'LZ_Al-FJSuMWbP263Hzp⟧", authDomain: "lunchbox-6b1d2.firebaseapp.com" };',
            "我在控制台新建了一个 key：⟦AIzaSy_"
            + "3wQ7CFccGk7Kr8d0Kl52Q4_O0_FxtZ4i⟧，你直接用这个调用 YouTube 接口就行",
        ),
        innocent=("https://maps.googleapis.com/maps/api/geocode/json?address=Marktplatz+4&language=de",),
    ),
    Credential(
        kind="Google AI Studio key",
        texts=(
            'export GEMINI_API_KEY="⟦AIzaSyT1EZCGvIw2qM2' + 'iojUlMuhLZv0XlyC37lP⟧"',
            'genai.configure(api_key="⟦AIzaSyuMVBN_9T4mJXQ' + 'GzubNSVPOAUTqWqKEvkZ⟧")',
            "curl -H 'x-goog-api-key: ⟦AQ."
            + "Ab8RN6o4PjC_3m2YNE6OctbN2QqkwBVrICwcrEwwuPRPmnPAsz⟧' https://generativelanguage.googleapis.com/v1b"
            + "eta/models",
        ),
        innocent=('model = genai.GenerativeModel("gemini-2.5-flash-preview-05-20")',),
    ),
    Credential(
        kind="Google OAuth client secret",
        texts=(
            '"web":{"client_id":"718820415563-3zw06bzohq66mv8zrqy1u22cp153odtu.apps.googleusercontent.com","cli'
            + 'ent_secret":"⟦GOCSPX-'
            + 'DwxQPsvH4dgQDEd6HHg4C-UZTMPn⟧"}',
            "SOCIAL_AUTH_GOOGLE_OAUTH2_SECRET = '⟦GOCSPX-" + "vdNYaHzvrKHBJFj2qSFTnxhWDaOM⟧'",
            "The consent screen works now, the new client secret is ⟦GOCSPX-"
            + "2W4sg95iG2Z7CDuWmG6nICvfXJXt⟧ (the old one gets deleted Friday).",
        ),
        innocent=(
            "Create the OAuth client in the console, download client_secret.json and keep it out of the reposit"
            + "ory.",
        ),
    ),
    Credential(
        kind="Google OAuth access and refresh token",
        texts=(
            "Authorization: Bearer ⟦ya29.a0A8wm9PSKY8rf4LwOrSgNKVZeW6y4gn0lE"
            + "26L6FB1GUh2RWhtbqr7WelrLnKwadB-hPM7T41kURoE0sHxX036MJOsbOT5ZWtjdXlc0HsyUozca-_49Ho_Pd7VEta315y-dqZ"
            + "SjwBoT3w6wb0Nc0c4CRhKvbxiN9A-GxI4C73UIwAxLO-I45XDYx9a8_s7I9UYiN5Lfa-N4Vln4K⟧",
            '"refresh_token": "⟦1//0kCbGW5liXYPhN-aSJem444A15J0dCwpRnWDP'
            + 'mSl9AHj9joz5ZxtwJdmf3NdDRUzUmi1DWirxypXGSSG_Kawl_pkhDcX7Ysz2ol⟧",',
            "$ gcloud auth print-access-token\n⟦ya29.c.c0AerRiXWYvDmNmf1Zk_5En-rzSubdzz5"
            + "3e6I8Ooh-hG84yaI8pqeXp9IQdMkV4qYTqtJeHgrG8SyizC4_nWnf_Talf2VI3P-5ot1sk2QACzw1Bjn8zYM4ROjMGoabaEU6l"
            + "i2L37BeFEayh3NC_fpRkaKEJsNY7Ayuqpqeyq-mFYnUcjKQI28a34u2IKlSQX5MiFE3Iq1jcOAAzTRqdxTaBdr0lpX7-s17sQV"
            + "03afoFOLmk1_KT⟧",
        ),
        innocent=("gcloud auth application-default login --scopes=https://www.googleapis.com/auth/cloud-platform",),
    ),
    Credential(
        kind="Azure storage connection string",
        texts=(
            'AZURE_STORAGE_CONNECTION_STRING="DefaultEndpointsProtocol=https;AccountName=stmedia7eu;AccountKey='
            + "⟦8ro/GTVkU5AipyAAmnontB7BgdralwXgX6MHeSvO"
            + 'uLFXJ5ehWLlWZTEcvbfS+3JWTtGAKZK+Yokg/ldf7mgulY==⟧;EndpointSuffix=core.windows.net"',
            "az storage blob upload --account-name stmedia7eu --account-key ⟦F9KdSmB0X0YxWWV7z+Ut1onFLUzXV3wI56"
            + "JMFBsM"
            + "CsoJRcuSPKJLwx/2LI45j5P2qEdBk2O1howvkajcxYLIsj==⟧ -c uploads -f report.pdf",
            '  "ConnectionStrings": {\n    "Blob": "BlobEndpoint=https://stlogs4.blob.core.windows.net/;Account'
            + "Name=stlogs4;AccountKey=⟦b9QXn9eutKNlsBYrog7GLGdz7nlWofBocdLFqYCy"
            + 'VSc/jWoExscC0iUtyDkj49S8D15HpvfvDuS8iNHiDJUGPl==⟧"\n'
            + "  }",
        ),
        innocent=(
            "DefaultEndpointsProtocol=https;AccountName=<storage account>;AccountKey=<key1 from the portal>;End"
            + "pointSuffix=core.windows.net",
        ),
    ),
    Credential(
        kind="Azure SAS token",
        texts=(
            "https://stmedia7eu.blob.core.windows.net/uploads/q3.csv?sv=2024-11-04&st=2026-02-01T08%3A00%3A00Z&"
            + "se=2026-03-01T08%3A00%3A00Z&sr=b&sp=r&sig=⟦v4kx256Ix3GwNgDOIoGc%2BhM"
            + "CRVoFWvEgPDT%2FNPJOvHv%3D⟧",
            "azcopy copy './dump' 'https://stbackup2.blob.core.windows.net/nightly?sp=rcwl&se=2026-12-31&spr=ht"
            + "tps&sv=2024-11-04&sr=c&sig=⟦flwbose0Nrr9nDMDqLgYMLR"
            + "Ksf0Glyj9ks7UoT2HGYI%3D⟧' --recursive",
            "Der SAS läuft bis Ende Juni: sv=2023-01-03&ss=b&srt=sco&sp=rl&se=2026-06-30T22:00:00Z&sig=⟦k4QhPJZ"
            + "ykdl1zETtpC4ReKT7"
            + "jvI5aAM%2FRhoXyqHYnhD%3D⟧",
        ),
        innocent=(
            "https://learn.microsoft.com/en-us/azure/storage/common/storage-sas-overview?tabs=account&sv=2024-1"
            + "1-04",
        ),
    ),
    Credential(
        kind="Azure client secret",
        texts=(
            "AZURE_CLIENT_SECRET=⟦O598Q~FqxlzTHRUtylaR" + "5Ygym.nKuS7PIXT.cx0o⟧",
            "az login --service-principal -u aeb5f31a-294a-45ab-82af-0ac38493f525 -p '⟦n078Q~J0t35GXmwQ6aKJ"
            + "j0j5DvntRQytwm.mRAUh⟧' --tenant 8544e2cb-2727-434d-a617-f556c8cb87ee",
            'provider "azurerm" {\n  features {}\n  client_id     = "43166ad1-b44f-4b10-9466-82d3e3573cc4"\n'
            + '  client_secret = "⟦FHu7Q~KI.eUeUPtSxIh2'
            + 'TmbNxrRq~x7.L8lAsCdg⟧"\n'
            + "}",
        ),
        innocent=('tenant_id = "c548e209-b8a0-4c8e-ab84-e9150e795cbe"',),
    ),
    Credential(
        kind="Azure DevOps personal access token",
        texts=(
            "git clone https://build:⟦yiw5tzhgm2ufkpf2puvqpuq5vb"
            + "ncko5fju7yyt6c3a4m26xnahxl⟧@dev.azure.com/contoso-rail/timetable/_git/api",
            "AZURE_DEVOPS_EXT_PAT=⟦PJbFyFXxl1qZeoZeweswY7wendCukEIMVoh9Y3vS"
            + "TObqanqlOywPsyHyVxGnRWoMjA21qXLfqtoAZDOEL2EV⟧ az pipelines list -o table",
            "please use this PAT for the feed until mine is renewed: ⟦gdeTPd1aumYIzOy1Ct8uujhkeWkRzy1M8DF1kURW"
            + "e8VbKvXI3MNBE4FyAgk0FS534q7cx5MeYLgAZDOEx8ll⟧",
        ),
        innocent=("PATs in Azure DevOps can live for up to one year; after that the pipeline fails with TF400813.",),
    ),
    Credential(
        kind="Azure Service Bus key",
        texts=(
            "Endpoint=sb://orders-weu.servicebus.windows.net/;SharedAccessKeyName=RootManageSharedAccessKey;Sha"
            + "redAccessKey=⟦KIJS"
            + "Kj0GWyF13O1kpUuVtvKqUz4miDLS+nKn/RgDnJM=⟧",
            'SERVICEBUS_CONN: "Endpoint=sb://iot7.servicebus.windows.net/;SharedAccessKeyName=send;SharedAccess'
            + "Key=⟦3S1Ae/HN/Up/q+BB11X8g2"
            + 'UypeIPzZi76Omzizpw7KO=⟧;EntityPath=telemetry"',
            "HostName=hub-plant2.azure-devices.net;DeviceId=press-04;SharedAccessKey=⟦pQydL9RliX6yvIowAqhYB4"
            + "EgwhRDR9/z2et1iMqDryt=⟧",
        ),
        innocent=("sha256-KiYK0BcrqmBc3cz5Xb1otfm2VYr6DcnQGni28itJu8O=",),
    ),
    Credential(
        kind="DigitalOcean token",
        texts=(
            "doctl auth init -t ⟦dop_" + "v1_0e79951acebc7e9db3422f3b4fe9856a8a2664480198d4286f65a074cc83f6b6⟧",
            'provider "digitalocean" {\n  token = "⟦dop_'
            + 'v1_b53d80a0e5805c476eec68ac1afa58750de1eec0612588821c931c8e815a06d9⟧"\n'
            + "}",
            'curl -X GET -H "Authorization: Bearer ⟦doo_'
            + 'v1_566e13081cdc85fdd8d303796e0724b0cff784009930a700958bf4d06657d625⟧" https://api.digitalocean.com'
            + "/v2/droplets",
        ),
        innocent=("Image digest: sha256:ca3111670b26c1adecaf3a70d13da10d846d448f149501016793cb64fc0bfbdd",),
    ),
    Credential(
        kind="Linode token",
        texts=(
            "LINODE_CLI_TOKEN=⟦c34c0bbe6b85ce943159906827bcf25c" + "6bfc4f59faf9015d164283ecdc16c13c⟧",
            "linode_token: ⟦31a365a9deeffc5a58428342e5e570b4"
            + "662915767faff64be8be230941ab90d1⟧  # read/write on domains only",
            "I created a Linode API token with 6 months of validity: ⟦3b93c3cd383f79fadf4696b725edbab8"
            + "02566412703ea9506d938413afd21fc3⟧",
        ),
        innocent=("d2573288f77a4772b376673257c6b9c39e87824a110d03e504a8757ac88fa983  linode-image-2026.02.tar.zst",),
    ),
    Credential(
        kind="Hetzner Cloud token",
        texts=(
            "export HCLOUD_TOKEN=⟦p3QXWhgpGUhAUWrp9oqFFpaadbEsjXHd" + "nvgnhL5vXz8ol92ZBwvvng93sESSe5qw⟧",
            "hcloud context create prod\nToken: ⟦EAxnt8JO9jmem1jVq6Z6c0q6ypZspLz1"
            + "WHtujTxX93UNzSkDyOVyIKtyVK8BINgo⟧\n"
            + "Context prod created and activated",
            '[[context]]\nname = "staging"\ntoken = "⟦EX1ImRPwPNKGRYvPQUlOejoY9cptmb7b'
            + '6cQxg7RDc23OEKx7EQPK5pXt2HXgHFTs⟧"',
        ),
        innocent=('variable "hcloud_token" { sensitive = true }',),
    ),
    Credential(
        kind="Scaleway secret key",
        texts=(
            "SCW_SECRET_KEY=⟦238f7a92-d75b-47fa" + "-a127-f2bd2eec7ac6⟧",
            'curl -H "X-Auth-Token: ⟦de66cf95-2d7e-4bcf'
            + '-a2f7-16631bf10b52⟧" https://api.scaleway.com/instance/v1/zones/fr-par-1/servers',
            "# ~/.config/scw/config.yaml\ndefault_region: fr-par\n"
            + "secret_key: ⟦ca77aca7-4964-4454"
            + "-9dc6-51424c8399e8⟧",
        ),
        innocent=("SCW_DEFAULT_PROJECT_ID=0ac2b3cb-1a35-4fe3-b2cf-23d32ab489ca",),
    ),
    Credential(
        kind="Alibaba Cloud access key",
        texts=(
            "阿里云的 AccessKey ID 是 ⟦LTAI" + "5tQjkO0jhddI3CwF5Uwy⟧,secret 我单独发你",
            "ALIBABA_CLOUD_ACCESS_KEY_SECRET=⟦TkxaEMj9G6zBmLq" + "U14BnS5zVdzsyVr⟧",
            'client = oss2.Bucket(auth, endpoint, "logs", access_key_secret="⟦pDgcyRKLihjblA5' + 'GqvzYrbVOex05pk⟧")',
        ),
        innocent=("如何在阿里云控制台创建 AccessKey?请参考 RAM 用户文档。",),
    ),
    Credential(
        kind="Tencent Cloud secret",
        texts=(
            "TENCENTCLOUD_SECRET_ID=⟦AKID" + "USdlI5DO6lHL8aijPo8CGGwmJOCkCFFH⟧",
            "腾讯云 SecretKey：⟦4OQiVphbzoE7WVPc" + "kyOvmhGH3GH6LIgp⟧,COS 桶在广州",
            'cred = credential.Credential(os.environ["TENCENT_ID"], "⟦Bt31CLqjM08B2Hro' + 'zpzvs8pRyfjwsWJi⟧")',
        ),
        innocent=('cred = credential.Credential(os.environ["TENCENT_ID"], os.environ["TENCENT_KEY"])',),
    ),
    Credential(
        kind="OVH application secret",
        texts=(
            "[ovh-eu]\napplication_key=a65c9605ec7a26a1\n"
            + "application_secret=⟦0feae1f5982656b0"
            + "b1d4b3631f6cc19f⟧",
            "OVH_CONSUMER_KEY=⟦caf707e1cbadde69" + "79fe35354632be81⟧",
            'client = ovh.Client(endpoint="ovh-eu", application_secret="⟦HrkHOEPPbzMCYyil' + 'bCjLN04XoNP29QAV⟧")',
        ),
        innocent=("md5 of the backup: 51f1173fe53774706493f721d485858c",),
    ),
    Credential(
        kind="Oracle Cloud credentials",
        texts=(
            "docker login fra.ocir.io -u 'axt3k/oci-push' -p '⟦1cYLY4;)I6" + "GLO{RENFD6⟧'",
            'oci_auth_token = "⟦okJE5rM>uT' + '2u#nqwO4Ad⟧"',
            "OCI customer secret key for the S3 compat endpoint: ⟦vUZ47utgwEKMs3ikiLoV++" + "QgSksBC5hCMUKLgJ/NvKI=⟧",
        ),
        innocent=(
            "user=ocid1.user.oc1..aaaaaaaapthi2vtzu8cpfj4rdz5xrrsu8tfn9xkc69ofnpczn9bfbsfsuvqe\n"
            + "fingerprint=3b:9e:41:7c:aa:05:d2:68:f1:90:1e:c3:77:2d:5b:e4",
        ),
    ),
    Credential(
        kind="IBM Cloud API key",
        texts=(
            "ibmcloud login --apikey ⟦CtmQF5od4B4PjVlxE9AiJO" + "mJnkNKZGPhxB5HBnYekFfk⟧ -r eu-de",
            '{"name": "ci-runner", "apikey": "⟦pi3O-7SwHRsJdEu3QUir0i'
            + '0PZ2MCBxLAdvDHnemEmkDi⟧", "createdAt": "2026-01-14T10:22+0000"}',
            "IBMCLOUD_API_KEY=⟦VDCmii2y2TqFg9c-KDRPsr" + "0B9c3EHH0A352wpO77ER-F⟧",
        ),
        innocent=(
            "crn:v1:bluemix:public:cloud-object-storage:global:a/a307b3e7a3dbd27483d52971712bcdd4:ff6a1899-7491"
            + "-4ba3-944c-b414bbf9a068::",
        ),
    ),
    Credential(
        kind="OpenAI project key",
        texts=(
            "OPENAI_API_KEY=⟦sk-proj-"
            + "SF0MTK1Rq4IdvvmOXan9rxq3GSFvKm6oKoNoCrM33yYvHGRfFb8uG1SZQxMF-9orp3LgK1tbmIT3BlbkFJLHBBD1HieVnGqnM1"
            + "e-AmGg7R4lpqwFLkY2mc5WWS764c6GsAB84rBrT4Q7MTp6wmT9b-lOmkou⟧",
            "my key for the demo project is ⟦sk-proj-"
            + "TSIpftDr5FqhWizDwv6HwidtQqo_4LkuZQxPQ4JWVGfkxMvfUph_1F5o9xh9S8qCbApg9JVPo2T3BlbkFJhfqieRIS2CuGPeki"
            + "tIivqknGdkkBtgneJ1D8vvZ2-ChMV6GaotmSDaoH8iHRkk4iLYBR7CTked⟧ please put it in the .env, not in the "
            + "code",
            "openai.AuthenticationError: Error code: 401 - Incorrect API key provided: ⟦sk-proj-"
            + "RIC99o1aWrG6XRxCRNHOaMNOJcB9-u7xakIX1_XkzSW0nJvF-FRodJ_6SLh-Tc35D4kbBBzGveT3BlbkFJp8-tYEwoELPjUmjC"
            + "h5aZA7cGBlPidGAHeBhrIbIa-0mVKhCr-2PRtZKtHNKgCYY2VWRQ2lZTut⟧. You can find your API key at https://"
            + "platform.openai.com/account/api-keys.",
        ),
        innocent=(
            "openai.AuthenticationError: Error code: 401 - Incorrect API key provided: sk-proj-****************"
            + "************J7wA.",
        ),
    ),
    Credential(
        kind="OpenAI service account key",
        texts=(
            'client = OpenAI(api_key="⟦sk-svcacct-'
            + "JNk2b2sjC1UbX3wyzzHr9lbeXcczmt8zzCfCyyf_xS9QysRtfqqrSQO_fdkhA66FF7SdUNCtL9T3BlbkFJ8y81yFL-ryZAJQam"
            + 'seTiV1YzT4OrAeBVaE2qHm4ER2NJPtfX1hc250kOJVUcPcFkj_v8o75TUi⟧", organization="org-Ai0RtykTsYuy8v7an7'
            + 'zVXHsg")',
            'curl https://api.openai.com/v1/models -H "Authorization: Bearer ⟦sk-svcacct-'
            + "EiAY_Q5JT1tGeBh9005OQbznDK2G1wpZSxiMYNNCOfMQUUVSXsVdJkoJk2rYqGpg0DfI-W1YPHT3BlbkFJzW68J8fhcPnl8VT5"
            + 'yEY0_z3JAr8kr_HbC5UFIeOqB9O2etxRQRR70bbfPETbG_q-7iMFfeB1md⟧"',
            "openai:\n  admin_key: ⟦sk-admin-"
            + "8aEceNNs0CwQXDPuA_9J0WUPxWbCtZBcR_rGqzO-cDZESHxXf1uFVmam3oZOCJfq6NWub4jSRzT3BlbkFJzBdGGOK88ZSSGBxY"
            + "N5HanfOX_0KegTB-z7sPiz3e1MfaemvcLztV9LtyEZm4Th71mV7PC-V6Nb⟧",
        ),
        innocent=('<div class="sk-folding-cube sk-spinner-three-bounce sk-child-secondary-animation-wrapper"></div>',),
    ),
    Credential(
        kind="OpenAI legacy key",
        texts=(
            'openai.api_key = "⟦sk-' + 'lmBhwnJKUsObnbmZp7cZT3BlbkFJhD92WLzVhuSbAhiC9DbM⟧"',
            "Kannst du mal testen, ob der alte Schlüssel ⟦sk-"
            + "V1zi1ksYpmmvtHMQroiCT3BlbkFJyvKWR7m09QLVveCM7Ohe⟧ noch geht?",
            "  - name: OPENAI_API_KEY\n    value: ⟦sk-" + "HMaE2q45FosGLGonE4NKT3BlbkFJvYdOHeVJe56Fd6yju8nU⟧",
        ),
        innocent=("response id chatcmpl-Q1ewZaV5lKNtT8EomKO2XbhAWuQqN, system_fingerprint fp_973d1c5bcb",),
    ),
    Credential(
        kind="Anthropic API key",
        texts=(
            "export ANTHROPIC_API_KEY=⟦sk-ant-"
            + "api03-ZwuefUSWh4drwDI6XMphTNl9NdsZg4Jqh8M5Yefgk6YyzFFnqOMkwL9whNYPMiBlb8ka-0Q8asObTvb084R2sIGh85ZF"
            + "7AA⟧",
            'curl https://api.anthropic.com/v1/messages -H "x-api-key: ⟦sk-ant-'
            + "api03--Z0yDJji7colQGUIdsbKPNViB_BRy_zE8kn4dGWE-O6o_9c3_nLR7qJEOYMyc6j7ePzaD3g7_TKaWUq3QSNoUZbH2PYw"
            + 'dAA⟧" -H "anthropic-version: 2023-06-01"',
            '{"claudeAiOauth": {"accessToken": "⟦sk-ant-'
            + "oat01-0bmKmWtljRXe5zH1dqqsae88IlWvGI_ddbFRQwfBURW311Fi_3X5smI8LoxbdR_6y53xEh_iiFWWqvWEGrpoZ-06plbd"
            + 'hAA⟧", "expiresAt": 1790412340112}}',
        ),
        innocent=("claude-opus-4-20250514 answered with request id req_011pZKDvxH9OSsnRWKdBg5OO",),
    ),
    Credential(
        kind="Mistral API key",
        texts=(
            "MISTRAL_API_KEY=⟦mCJDBCjLeLHbuviG" + "wMj6uyL4qoKM7E6p⟧",
            'client = Mistral(api_key="⟦8GoWp3AM9aysHpbG' + 'hCleCU1bDED8du0B⟧")',
            "der Mistral-Key lautet ⟦M3kcf2YmQOanLUjj" + "nTUvLmRze6NkWm6M⟧, Limit sind 20 Euro im Monat",
        ),
        innocent=('client = Mistral(api_key=os.getenv("MISTRAL_API_KEY", ""))',),
    ),
    Credential(
        kind="Cohere API key",
        texts=(
            'co = cohere.ClientV2("⟦YdsBNaYMcp8OLWBptjc2' + 'CpeyaqJj1zLoCk4fIT1F⟧")',
            'COHERE_API_KEY="⟦8TOqotfvQyclDoT3FS6E' + 'x7N4MUpQKONQ33dV0ew4⟧"',
            'curl https://api.cohere.com/v2/chat -H "Authorization: bearer ⟦osIDNGQphN0czrMEry5Z'
            + 'EGXOCsjF6kmZdYj8z1aR⟧" -d @body.json',
        ),
        innocent=("commit 7c9002044fa3439d00554f6e314496107583c58f reverts the rerank change",),
    ),
    Credential(
        kind="Groq API key",
        texts=(
            "GROQ_API_KEY=⟦gsk_" + "dLYEkbpiSfPrSyWSr0aKWGdyb3FY6NxRM7VwXyW8fBsnaf2n7xak⟧",
            "use ⟦gsk_"
            + "l5XA5PzXleQxAa63bDHIWGdyb3FY3MiIW0jeA7Y3q2r3MZHVRSxP⟧ for whisper on groq, it is the free tier",
            "const groq = new Groq({ apiKey: '⟦gsk_" + "sQ8rBL09hvMDWkYpTDdrWGdyb3FYRIQ8RRwrTouMeutCwiqrU1nB⟧' });",
        ),
        innocent=("const gsk_handler_registry_by_name = new Map();",),
    ),
    Credential(
        kind="Hugging Face token",
        texts=(
            "huggingface-cli login --token ⟦hf_" + "RRYXYMHwtrXnsKXYjOkmECTrfKHinbCojh⟧",
            "git clone https://oauth:⟦hf_" + "AAwjVlKytDRfhNKCRfTvwQLKDoWHmPkgBE⟧@huggingface.co/acme/private-model",
            "HF 的 token 在这里：⟦hf_" + "HKIjftCttMRcdHrzXnDdZUwFfWFnaeUiJJ⟧，下载 gated 模型要用",
        ),
        innocent=("from transformers import hf_hub_download_with_progress_callback",),
    ),
    Credential(
        kind="Replicate token",
        texts=(
            "REPLICATE_API_TOKEN=⟦r8_RESDacOohRZYluFlt" + "LQHvc4Rn33hftMms5J28⟧",
            'replicate.Client(api_token="⟦r8_v32Bs5IIaND2xoWVJ'
            + 'CJfuXF8hsMxGJO2fgJXw⟧").run("black-forest-labs/flux-dev", input=payload)',
            "environment:\n  - REPLICATE_API_TOKEN=⟦r8_pMXcNhbyLdHVf6Np1" + "79x7WSKYdlPv0o4cxPUh⟧",
        ),
        innocent=("The prediction finished in 8.4 s, r8_unorm textures are not supported on this GPU.",),
    ),
    Credential(
        kind="Perplexity key",
        texts=(
            "PPLX_KEY=⟦pplx-" + "DdIH0C9l2m7VRfGdEYfHJ6C67uARnknUp3vEzbWFOnM4v3sX⟧",
            'headers = {"Authorization": "Bearer ⟦pplx-' + 'RIGEaHkVxj1B7Jxfnsz0vzoQ8uoiIkTHXW8nc2mcHEO0hndf⟧"}',
            "Perplexity works with ⟦pplx-"
            + "zeKGduySd7ZNDmA6VtbPDO2wLn9XcFL0mcCVnrQQQNa7Hkzz⟧ but returns 429 after ten calls",
        ),
        innocent=("perplexity on the validation set: 12.4817 (pplx-7b-chat)",),
    ),
    Credential(
        kind="xAI key",
        texts=(
            "export XAI_API_KEY=⟦xai-"
            + "JUEAo5l6iru8LrPP0DGPepcvOvigJL1G6P5Yxa5P74A2Dz509z5idAitCsBillGNkUYKmRNB3RzRGKIl⟧",
            '"grok": {"baseURL": "https://api.x.ai/v1", "apiKey": "⟦xai-'
            + 'iWjYhbz3PqQP1aBF3PcLDYwl3bZaVMvq6pYTKVya8GxmVIjLVLA3hK7qyfAEjOX2vEGlGIwZBFk5niu7⟧"}',
            "2026-03-02 11:20:18 DEBUG httpx request headers: {'authorization': 'Bearer ⟦xai-"
            + "YIEWvHJcONnQcF7PFySIIHmzjksE5GfJCqnmdPy4yavYgtFgrI6gjtjkFx3262USPDaWzvstnq5coWt0⟧'}",
        ),
        innocent=("pip install xai-sdk==1.4.0",),
    ),
    Credential(
        kind="DeepSeek key",
        texts=(
            "DEEPSEEK_API_KEY=⟦sk-" + "ecf7f00911e0dfecff0c160e25278336⟧",
            "我的 deepseek 密钥是 ⟦sk-" + "f1188be34b6174b75088039147421a30⟧，余额还有 30 块",
            'client = OpenAI(api_key="⟦sk-'
            + 'da6e95b66cdcbbfb71391bae135b7e1a⟧", base_url="https://api.deepseek.com")',
        ),
        innocent=("deepseek 的 API key 在哪里申请？",),
    ),
    Credential(
        kind="Together AI key",
        texts=(
            "TOGETHER_API_KEY=⟦54a40965beb3d519be0c22b4d941f38f" + "69f60a92c71891a22d4f04fcdb23c5a5⟧",
            'together = Together(api_key="⟦tgp_' + 'v1_kEcfVaOiHokQm-67NIdGU1MnqSQL_lY3eoFRptxEypp⟧")',
            "curl -s https://api.together.xyz/v1/models -H 'Authorization: Bearer ⟦tgp_"
            + "v1_RcJLfTqyabtFQklFCnyiY115B6GVdFivvfAJsbj1AY0⟧'",
        ),
        innocent=(
            "weights checksum sha256 e32179070b086b3d520f6934772729c0a61414b2e36e029a127bae1539a80ff6 matches t"
            + "he release notes",
        ),
    ),
    Credential(
        kind="Fireworks key",
        texts=(
            "FIREWORKS_API_KEY=⟦fw_" + "eQvHrqydAYTHQkYMPP3VdMMq⟧",
            "the fireworks account is paid, key ⟦fw_" + "HwPFuXNcn04ph5iTW8AdSAOG⟧",
            'fireworks:\n  api_key: "⟦fw_' + 'DjegKWthiKxT7iOIiR6rz9N6⟧"',
        ),
        innocent=('fw_version = "fw_2026_03_release_candidate"',),
    ),
    Credential(
        kind="OpenRouter key",
        texts=(
            "OPENROUTER_API_KEY=⟦sk-or-" + "v1-5299b2206ac448036660069124631facc6ce88f8cd1a8826b568e4a58f400663⟧",
            "aider --model openrouter/qwen/qwen3-coder --api-key openrouter=⟦sk-or-"
            + "v1-cf38e0a68b42b43d4d7b631866eeb83cf4e5031cdca9dc8952e6f8140380af16⟧",
            'fetch("https://openrouter.ai/api/v1/chat/completions", { headers: { Authorization: "Bearer ⟦sk-or-'
            + 'v1-c0b040df9a0102977afa6eb4a0fd500333533d782af817f81520495ab513cd9d⟧" } })',
        ),
        innocent=("OpenRouter keys start with sk-or-v1- and can be limited per key.",),
    ),
    Credential(
        kind="ElevenLabs key",
        texts=(
            "ELEVENLABS_API_KEY=⟦sk_" + "91c1d6385c6518ad7607bfa6a512efaa9c100ad8e22fda92⟧",
            'curl -H "xi-api-key: ⟦sk_'
            + '191bcb8b5d13e134d095a3f4575895a2498aef7367b48a50⟧" https://api.elevenlabs.io/v1/voices',
            "Stimme klonen klappt, xi-api-key ist ⟦1481b646bcd2535f" + "9af0ad1faae357bf⟧",
        ),
        innocent=('voice_id = "MR4eoYs8obWhwlbSI7Zl"',),
    ),
    Credential(
        kind="LangSmith key",
        texts=(
            "LANGSMITH_API_KEY=⟦lsv2_pt_6e67dab40b4bba667" + "b9c726f43682270_707e6c4920⟧",
            "LANGCHAIN_TRACING_V2=true LANGCHAIN_API_KEY=⟦lsv2_sk_f0c8b13716350eac3"
            + "5ea090c30f3b86b_d2a68d0696⟧ python agent.py",
            'Client(api_url="https://eu.api.smith.langchain.com", api_key="⟦lsv2_pt_cd7a9c1e1eb178aa6'
            + 'dd01c7cb48d79cb_5016f49ea8⟧")',
        ),
        innocent=("LANGSMITH_PROJECT=lsv2-migration-2026",),
    ),
    Credential(
        kind="Pinecone key",
        texts=(
            'pc = Pinecone(api_key="⟦pcsk_'
            + '7h9VKO_hSPbXj05NNwMmHR6HKkMqQriY26Nr5SkjOmHX59Njr2VpEjBKnSIpBGlGntg7a5⟧")',
            "PINECONE_API_KEY=⟦pcsk_" + "7VVkN_IlYrvxNWGx9qnyhn8hRX41qmVDbtKOpKfWnnrCdde6RrO6tafdOmuALZG4m7Vrz⟧",
            "Api-Key: ⟦4ba6d2c1-7762-49de" + "-bb6a-a98633e2f115⟧\n" + "X-Pinecone-Api-Version: 2025-10",
        ),
        innocent=("index host: https://docs-lq81kfz.svc.aped-4627-b74a.pinecone.io",),
    ),
    Credential(
        kind="Weaviate key",
        texts=(
            'weaviate.connect_to_weaviate_cloud(cluster_url=url, auth_credentials=Auth.api_key("⟦yNIOCiRT965jtA'
            + "8uSG"
            + 'cGyR9IPp5WPuvyvpmL⟧"))',
            "AUTHENTICATION_APIKEY_ALLOWED_KEYS=⟦jzIJsXId3Makdb7pc3qP" + "myCGYJwdoFvaloFEFELY⟧",
            'WEAVIATE_API_KEY="⟦bkUlpA9W1C1ALueUk6uMJXjq8ODOemUo15PQbOFT'
            + 'WHn4SHvgDAXNUlmjw9aWFtqf0N8ZCNrjblM476g1=⟧"',
        ),
        innocent=("AUTHENTICATION_APIKEY_ENABLED=true",),
    ),
    Credential(
        kind="Qdrant key",
        texts=(
            'QdrantClient(url="https://a91c.eu-central-1-0.aws.cloud.qdrant.io", api_key="⟦eyJhbGciOiJIUzI1NiIs'
            + "InR5cCI6IkpXVCJ9.eyJ"
            + "hY2Nlc3MiOiJtIiwic3ViamVjdCI6ImFwaS1rZXl8NzExZDFjMTMtYTBmMy00MWJlLTk0YmMtMmU4NDk5M2M5ZmZlIn0.j1wZQ"
            + 'hfEI8SXZvY2yMSXlj5NxptHw07G3L7valCYoSQ⟧")',
            "service:\n  api_key: ⟦h-mOdw3n4W3iohDvgzRAFDlG6rQ"
            + "1BIyViuhYfoy5UwR9Pku493CZyX⟧\n"
            + "  read_only: false",
            "curl -H 'api-key: ⟦eyJhbGciOiJIUzI1NiIsInR5cCI6IkpXVCJ9.eyJ"
            + "hY2Nlc3MiOiJtIiwic3ViamVjdCI6ImFwaS1rZXl8YzE5NTk5N2QtZmYxNS00NDU0LWE1YmYtMWUwYmU2YjhlOTRlIn0.OzC3H"
            + "Rs-fcZWHacQaLBF1__ryB1BglANNL2t66zy7-c⟧' http://localhost:6333/collections",
        ),
        innocent=("point id 5ab82e0a-72df-49df-aa44-1dcb04951dce has score 0.8812",),
    ),
    Credential(
        kind="Tavily key",
        texts=(
            "TAVILY_API_KEY=⟦tvly-dev-" + "Hv2OrYec2dfO7UDD0NiJWwdtM2KvD8JH⟧",
            "https://mcp.tavily.com/mcp/?tavilyApiKey=⟦tvly-prod-" + "Giq0C86ohVRgC0fRm8JPPjHOVcdY3ecI⟧",
            'TavilyClient("⟦tvly-' + 'uwR5lsln0nuqIxjl2O29ux4C2STm8zls⟧").search("weather in Ulm")',
        ),
        innocent=("npx -y tavily-mcp@0.2.9",),
    ),
    Credential(
        kind="GitHub classic token",
        texts=(
            "GITHUB_TOKEN=⟦ghp_" + "M3hyVNs2Z65AoYEFTBAiRCnKfUxRqnjlWN9U⟧",
            "git remote set-url origin https://⟦ghp_"
            + "brGvGDRmeImtsUDGB2IzkwP5gXaKY3GT8Vtm⟧@github.com/acme-rail/timetable.git",
            "Here is my PAT so that you can push: ⟦ghp_"
            + "mednzHvbNEOdJNMLbl3KBXW7w43D61XkN8Sg⟧ — I will revoke it tonight.",
        ),
        innocent=(
            "set GITHUB_TOKEN in your environment before you run the release script",
            "env:\n  GITHUB_TOKEN: ${{ secrets.GITHUB_TOKEN }}",
        ),
    ),
    Credential(
        kind="GitHub fine-grained token",
        texts=(
            "gh auth login --with-token <<< ⟦github_pat_"
            + "11IY3JNVRJ2GV5MVDYW9K4_PjsR0H1Vu2CgEqbNqUs3oxVYEsnGJETuMFzJLTp96DLj23ppNHNDldQvMkz⟧",
            '"github": {"command": "docker", "env": {"GITHUB_PERSONAL_ACCESS_TOKEN": "⟦github_pat_'
            + '111E28271L4DO8CL2O25MK_HPyYRMv55qOaovE1HKXlkYZnfk2MXaDwJidXBqB3KBkIX0GHim0HlXUzN91⟧"}}',
            "remote: Invalid username or token.\nfatal: Authentication failed for 'https://x:⟦github_pat_"
            + "11TUPPZS10005RVFUZY68G_3Bz7J4mg6tiaUgTfEmn3eROt1vNsVpiFLj5iIK3QygVdCa3c8afmBbqMtkS⟧@github.com/acm"
            + "e/infra.git/'",
        ),
        innocent=("def github_path_from_remote_url_or_none(remote_url: str) -> str | None:",),
    ),
    Credential(
        kind="GitHub app and OAuth token",
        texts=(
            "Authorization: token ⟦ghs_" + "6393KyV8pdFMrsKgz4A0Sk9nP4tv9wIYKJfh⟧",
            "oauth_token: ⟦gho_"
            + "apBnmrOP0AevBssCxZeZAvlXSXctCILcTJyN⟧\n"
            + "git_protocol: https\n"
            + "user: mwinkler",
            'octokit = new Octokit({ auth: "⟦ghu_' + 'tXh8FSsz1kMN0oupNpTWtSwX3lSHqjYrYY6U⟧" })',
        ),
        innocent=("Installation tokens are prefixed with ghs_ and expire after one hour.",),
    ),
    Credential(
        kind="GitHub refresh token",
        texts=(
            "refresh_token=⟦ghr_"
            + "BJZhwlv1lryWkiLznWmlgDPQj9iqdGft9aCIQFCL166PsUV5yRRfaXzVzAbWzmdH5rkpZjfIY8Kf⟧&refresh_token_expire"
            + "s_in=15811200&token_type=bearer",
            '{"refresh_token": "⟦ghr_'
            + 'hJgwd457P3IPdV0viU4XBGi9N60vXw3XwQviKCjqdYw4HB9hAWWIART8Fs3bNzTwwaM6F4kYsZgx⟧", "scope": ""}',
            "gespeicherter Refresh-Token der App: ⟦ghr_"
            + "nF38jsK4fHA0wGjiY8IDWGNwmHjrshm3rcF9VpDOpqJ8hnhBcpf1q9GnCLUYtMIoRvZe0E29tP79⟧",
        ),
        innocent=("the refresh token expires after 6 months",),
    ),
    Credential(
        kind="GitLab personal access token",
        texts=(
            'curl --header "PRIVATE-TOKEN: ⟦glpat-' + 'E4VtSkNoXoRjijgEZZcQ⟧" "https://gitlab.com/api/v4/projects"',
            "GITLAB_TOKEN=⟦glpat-" + "mNoujLcsScD_OWVoj86InTB0zbS.01.ppze0t0sd⟧",
            '[registry]\nurl = "https://oauth2:⟦glpat-'
            + 'c3khGEGkhreL6Nkp3t5x⟧@gitlab.intern.stadtwerke.de/tools/registry.git"',
        ),
        innocent=("See https://docs.gitlab.com/user/profile/personal_access_tokens/#personal-access-token-scopes",),
    ),
    Credential(
        kind="GitLab runner token",
        texts=(
            "gitlab-runner register --non-interactive --url https://gitlab.com --token ⟦glrt-"
            + "HZT0BXsXXrgdEjJ2gyTH⟧",
            '[[runners]]\n  name = "arm-builder-2"\n  url = "https://gitlab.com/"\n'
            + '  token = "⟦glrt-'
            + 't1_hQeQQjaHwuZe8UU4ZPN6⟧"',
            "registration token (deprecated): ⟦GR13489416E51O" + "amNOaQ0WMs5J6as⟧",
        ),
        innocent=('[[runners]]\n  name = "arm-builder-2"\n  executor = "docker"',),
    ),
    Credential(
        kind="GitLab deploy and job token",
        texts=(
            "docker login registry.gitlab.com -u gitlab+deploy-token-48812 -p ⟦gldt-" + "PXC5tNbHyDMM6VVF5Jim⟧",
            "machine gitlab.com login gitlab-ci-token password ⟦glcbt-" + "64_5a_lbZchpMF6eBE-8J2O⟧",
            "trigger the pipeline with token=⟦glptt-" + "789f25fb8c7f557675eb9d57b6f949931666ddd5⟧ and ref=main",
        ),
        innocent=("docker login -u gitlab-ci-token -p $CI_JOB_TOKEN $CI_REGISTRY",),
    ),
    Credential(
        kind="Bitbucket token",
        texts=(
            "git clone https://jkarlsen:⟦ATBB" + "oNec36LIekf5VB0pDkHYgUY0861BD860⟧@bitbucket.org/nordvik/checkout.git",
            "BITBUCKET_APP_PASSWORD=⟦ATBB" + "Vi7zbaJrmL7ShZj5rEgv2zTZA6BBE236⟧",
            'curl -H "Authorization: Bearer ⟦ATCT'
            + "T3xFfGN0AQqd8i1cqgE5fQdtz72P9UEUiZnfQWqtjdVZWEWdeEDvM0UV66UPJs5B5eyO_Aib1BvKVQ38x7Gxium-DVeAUxHirt"
            + 'GwLVdYAQx6M2zJRWR_VVtMH5Tsht6msYiXKJhGtPV6Njx8y3J_c6EHbjI3IrFfTjnGDivd1TK1Wyl4ZjAZ=DAAB219D⟧" http'
            + "s://api.bitbucket.org/2.0/repositories/nordvik",
        ),
        innocent=("App passwords in Bitbucket were replaced by API tokens in 2026.",),
    ),
    Credential(
        kind="npm token",
        texts=(
            "//npm.kelp.example/:_authToken=⟦npm_" + "OzKKAjsfEGWmYOI3zxtGweTfa7kbMJCd9MoH⟧",
            "NODE_AUTH_TOKEN=⟦npm_" + "pl0748YYooPKHFv1BM729vhGdPTL3IRnzo9y⟧ npm publish --access public",
            "//npm.pkg.intern.de/:_authToken=⟦5c83b604-731b-400a" + "-a976-16feddd39984⟧",
        ),
        innocent=(
            '"integrity": "sha512-34cLtkuxVgeV8lATekntd54OX3Bn4BB8GdpRQfVUfJqt7DGSD6s1th+vXarlNB6pfZyJag1gx2KGt'
            + '3N12jThKt=="',
            "//npm.kelp.example/:_authToken=${NPM_TOKEN}",
        ),
    ),
    Credential(
        kind="PyPI token",
        texts=(
            "twine upload -u __token__ -p ⟦pypi-"
            + "AgEIcHlwaS5vcmcCJ98mdra0V5bB1HQGLQQSX4EwP6tYyg5o3P9_dqn7foWRr7la0j3q48XK4qhJ3aiPwTdyJ0EdGeBOcMwzR2"
            + "V-l56UwPfSSjAHIH_LvGHUTm-jq5LWwP0Re5egEYPRnU9-3LbIKNTldxPj0xOF8rGsypML8⟧ dist/*",
            "[pypi]\nusername = __token__\npassword = ⟦pypi-"
            + "AgEIcHlwaS5vcmcCJQV7Hk-KTnNc3Neng-pJ-8ZSdSQ9e_6wEtF7nyY0qbxizZ5ceFQfRL2bLctYR_zv2bO9edWZeyoQ9MG1Xz"
            + "3JyhI-386RuQaf9X4jLBE6Fd6H-V8PHso37oI2HRh6x116OETOX35Tr6eE8XMBvVcjkRmkl⟧",
            "UV_PUBLISH_TOKEN=⟦pypi-"
            + "AgENdGVzdC5weXBpLm9yZwIkLubrJ9Dukn_YBgwLAw0CpF5KNcf7GLXc5TwIjHEh3X_2aJ-uCnL1tJIzlPOBKchjkJGiK4khjQ"
            + "wTrB0wmZ3Bj55I3MW3utEXaEHfWofcZeVg6ZgHQNgdSs3gVH-7gvgcJchuN4hjH4v7⟧ uv publish",
        ),
        innocent=(
            "pypi-attestations==0.0.27 --hash=sha256:59f2716259f16ccf907d0a4c3f731bc372c3baed2661d1f5114ab23f37"
            + "f0ba88",
        ),
    ),
    Credential(
        kind="RubyGems key",
        texts=(
            ":rubygems_api_key: ⟦rubygems_" + "1562a0b9777e7b617e789e361b05c3c1dd34ea352484dbe9⟧",
            "GEM_HOST_API_KEY=⟦rubygems_"
            + "b0407fdc3e2457bacce432e6c19ce32fedfb72ac956c1fb1⟧ gem push pkg/tariff-0.4.1.gem",
            "Authorization: ⟦rubygems_" + "d14b24f9e08deb61b3e87eecb5ce04b0a64a8b8f97a3ce95⟧",
        ),
        innocent=("gem 'rubygems_version_checker_with_long_name', '~> 2.1'",),
    ),
    Credential(
        kind="crates.io token",
        texts=(
            "cargo login ⟦cioaH50IRhCQYaxRU" + "ByVB92z63Olu1FJAAU⟧",
            '[registry]\ntoken = "⟦cioi8ytynFS7p46cG' + 'zp2BvuLvViSSkswEfZ⟧"',
            "CARGO_REGISTRY_TOKEN=⟦cioNBVY0R1PNsokiw" + "CxQUoTn7eXxoaSBAbT⟧ cargo publish -p railcar-core",
        ),
        innocent=('checksum = "d92696cd72088fd79227d9ca0ee131ed6b4c299cf4775ef10b9caf3ceba56984"',),
    ),
    Credential(
        kind="NuGet key",
        texts=(
            "dotnet nuget push bin/Release/*.nupkg -k ⟦oy2rx6c97y74rh54joxhtoe"
            + "agjs9k8ifp6xnlgzanm5z5f⟧ -s https://api.nuget.org/v3/index.json",
            "NUGET_API_KEY: ⟦oy25raejmi0dfs35rfyb4q1" + "0c6f336fvsxcolt7lo6ewiz⟧",
            '<add key="ClearTextPassword" value="⟦oy24qjdnmyc2g7zqyg4jaer' + 'htfvc12yglfrtfj64t5vpx3⟧" />',
        ),
        innocent=('<add key="nuget.org" value="https://api.nuget.org/v3/index.json" protocolVersion="3" />',),
    ),
    Credential(
        kind="Docker Hub token",
        texts=(
            "echo ⟦dckr_pat_" + "g4HHMCAYJk_lQj00fdW6mlxTMo0⟧ | docker login -u railbuild --password-stdin",
            "DOCKERHUB_TOKEN=⟦dckr_pat_" + "7FVLHd7PIp1PnOu9RW_Zc1A8v-2⟧",
            "dockerhub organisation token: ⟦dckr_oat_" + "WsrIhtQb30aoEPqcOS4HITX-AxuAklA_⟧",
        ),
        innocent=(
            "FROM docker.io/library/postgres@sha256:46cb42956d1d8e7ff399f80ff7e651326f44747fea607688bab45a7de25"
            + "55df6",
        ),
    ),
    Credential(
        kind="Docker auth base64",
        texts=(
            '{"auths": {"ghcr.io": {"auth": "⟦cmFpbGJ1aWxkOlgx' + 'aG0ta24/P2c5cGQ=⟧"}}}',
            '        "https://index.docker.io/v1/": {\n'
            + '            "auth": "⟦bXdpbmtsZXI6a1Ql'
            + 'Sk1kc05FN1YycQ==⟧"\n'
            + "        }",
            ".dockerconfigjson: ⟦eyJhdXRocyI6eyJnaGNyLmlvIjp7ImF1dGgiOiJj"
            + "bUZwYkdKMWFXeGtPa3RpTTJKVlRrbEdjRzVRVVRCd1YwZHFNM2xLTlRCRU53PT0ifX19⟧",
        ),
        innocent=('"credsStore": "osxkeychain"',),
    ),
    Credential(
        kind="JFrog token",
        texts=(
            "jf c add --url https://nordvik.jfrog.io --access-token ⟦eyJhbGciOiJSUzI1NiIsInR5cCI6IkpXVCJ9.eyJ"
            + "zdWIiOiIyNDkyMzMzIiwiYXVkIjoiYXBpIiwiaWF0IjoxNzc1NDIxOTE1LCJleHAiOjE3NzU0MjU1MTV9.B3Iym5tSf2JP8q9Q"
            + "Fv--Ii7NGidCKzZiyeBgIuyddrHXV9NWShu_HxY0b1TR63kzirsfVW191gnmtHPCpU-EhTafILWXDH8xcllLufU1fnpGXmGcD8"
            + "xSayd8A-lPeclPExoGmjlfoAs74URT6iZU8g4cjzeRnczor0VAMxAAW6a85Y1KlqGObHkQS1FDAWWXSGqWZeGqhLUd67_kcpyb"
            + "Pbn2ZkvpQTJV9AohklwP0nrHKw5vLkUYfPCfumuSXgwoDW2_02y2hl_hhgXHU3KsLJZ8RQDijR4UsZLeDRjP-2X12Ji2LYIzlL"
            + "Adx_dWpRS-L1pmmxnqqibzt_Urk_V7Gg⟧",
            "X-JFrog-Art-Api: ⟦AKCp10CxboYxsHosdTWxElx8cqheqnHAuFxG" + "gqUFeinzO6ngVmhvCbLScswaEdtQzBf9OLgMW⟧",
            "ARTIFACTORY_PASSWORD=⟦cmVmdGtuOjAxOjE3s8KgEJmpHEz87DZa" + "n18JFA6Q17Fe4G3Pu2EK9Rhjw1V6iSjI⟧",
        ),
        innocent=("https://nordvik.jfrog.io/artifactory/libs-release-local/com/nordvik/core/4.2.1/core-4.2.1.jar",),
    ),
    Credential(
        kind="SonarQube token",
        texts=(
            "sonar-scanner -Dsonar.host.url=https://sonar.nordvik.no -Dsonar.token=⟦sqp_"
            + "863a9144255e099334b8bf606931dc56798e437c⟧",
            "SONAR_TOKEN=⟦squ_" + "0f22d16c588d0bbee06e2e16e6173a0f3cbc9aad⟧",
            "sonar.login=⟦sqa_" + "b6d42e52ea8c1016638655298ebaedc9060561b4⟧",
        ),
        innocent=("sonar.projectKey=nordvik_checkout_ec68c4fc01e44b9a5b1b",),
    ),
    Credential(
        kind="Snyk token",
        texts=(
            "snyk auth ⟦a8ec7eef-9722-462a" + "-b3a9-e8bce6ad2cec⟧",
            "SNYK_TOKEN=⟦03b53d59-e112-47a4" + "-9240-016b48fc1ea6⟧ snyk test --all-projects",
            "Authorization: token ⟦5504e820-3ab1-4009" + "-a12c-4f7f2fd393a5⟧",
        ),
        innocent=("SNYK-JS-LODASH-1018905 has a CVSS score of 7.2, issue id b9d55b4d-3f2f-45be-90fe-d80f70dae00c",),
    ),
    Credential(
        kind="Codecov token",
        texts=(
            "bash <(curl -s https://codecov.io/bash) -t ⟦426f1f9d-8652-48d6" + "-942b-51d5a6ed45f6⟧",
            "CODECOV_TOKEN: ⟦3eaa914b-b57f-4d60" + "-97a8-c9af5cabc1c4⟧",
            'codecov:\n  token: "⟦0d267fd1-4769-468c' + '-ae6f-8f638babcdb7⟧"',
        ),
        innocent=("codecov:\n  require_ci_to_pass: yes",),
    ),
    Credential(
        kind="CircleCI token",
        texts=(
            'curl -H "Circle-Token: ⟦13520f6a50def4ab726b' + '3f42116178c111f5f75f⟧" https://circleci.com/api/v2/me',
            "CIRCLECI_CLI_TOKEN=⟦CCIPAT_" + "RngV7p5GZtWNvwcFI3baMC_fdb4cee2b30a6f6f82448770decb869df30adfd8⟧",
            "token: ⟦CCIPAT_"
            + "uvBiJAgXJl25qYygK0m3sc_f44cff1e12a4a753110c0c3cda2e85a9a7995ddb⟧\n"
            + "host: https://circleci.com",
        ),
        innocent=("CIRCLE_SHA1=8794ea4eda53532da57c5f5ec2777ce8782997b9",),
    ),
    Credential(
        kind="Buildkite token",
        texts=(
            "buildkite-agent start --token ⟦bkct_" + "ZUTk2w6bQENubOxft4hCrfcwwcpX0TtL4yQzSid9AuWv⟧",
            "BUILDKITE_API_TOKEN=⟦bkua_" + "4432a5fc4f93394bb11a55bef6863e0da79c913f⟧",
            "Der Buildkite-Zugang für dich: ⟦bkua_" + "f58cec929d173a1bb4951e0296a0cce398735d12⟧ (nur read_builds)",
        ),
        innocent=("BUILDKITE_BUILD_ID=19f94a22-19dc-4955-a3d0-eb3d2911411a",),
    ),
    Credential(
        kind="Travis token",
        texts=(
            "export TRAVIS_TOKEN=⟦oR3EJBFrwn0" + "-5aNqf5h1vd⟧",
            'curl -H "Travis-API-Version: 3" -H "Authorization: token ⟦kIsYx2EqEnX'
            + 'RV7NnFzdz64⟧" https://api.travis-ci.com/repos',
            "endpoints:\n  https://api.travis-ci.com/:\n" + "    access_token: ⟦uhehImJrAtu" + "8w6FffQJXiT⟧",
        ),
        innocent=("TRAVIS_COMMIT_RANGE=603568ba78ed...de16f2c679f1",),
    ),
    Credential(
        kind="Slack bot token",
        texts=(
            "SLACK_BOT_TOKEN=⟦xoxb-" + "769514095504-6354253284853-o293vHmrBy9PIqEzrgCpfvHr⟧",
            'app = App(token="⟦xoxb-' + '955553575888-1234948940745-CdF75bjwDaxaUZawBxxnzHLJ⟧")',
            "the bot is installed in #ops, token ⟦xoxb-" + "929736799950-0627999220943-suO8WDOjCOJydIReXcUVD3gg⟧",
        ),
        innocent=("Bot tokens start with xoxb- and user tokens with xoxp-.",),
    ),
    Credential(
        kind="Slack user token",
        texts=(
            'curl -F file=@report.pdf -H "Authorization: Bearer ⟦xoxp-'
            + '186365479976-817725291475-7790044498858-05c4a8026b15094ee959dbdfdbd2726f⟧" https://slack.com/api/f'
            + "iles.upload",
            "slack_user_token: '⟦xoxp-" + "942580295847-463095979774-2512157328845-d727d14f4e4f7d5419059c4182bf0b19⟧'",
            "xoxc token from the browser: ⟦xoxc-"
            + "9321008763935-8450388550524-8354387922849-6e8239f4fb04f5c30ab3e64a012242f60bdde73e1bda410f65a51e5f"
            + "c04a8a7a⟧",
        ),
        innocent=("channel C04QK1T9ZBM, user U03V8LRPW2D, ts 1772438122.004519",),
    ),
    Credential(
        kind="Slack app token",
        texts=(
            "SLACK_APP_TOKEN=⟦xapp-"
            + "1-A0AF9H10URV-0745217403721-b29123d36d798b42fb08408868e629929d06fb34b89fdad693b76c60ed7d4500⟧",
            'SocketModeClient(app_token="⟦xapp-'
            + '1-A0C1HT73FP4-2000618266822-19060eb2f6ef0c6a45783c0a2920dc3e561925286199e372d1d7f0d88ade7d64⟧")',
            "SLACK_SIGNING_SECRET=⟦9a2909a2dd8c3cbe" + "6f5f7c7c95e1b909⟧",
        ),
        innocent=("v0=a2114d57b48eac39b9ad189dd8316235a7b4a8d21a10bd27519666489c69b503 is the signature in the docs",),
    ),
    Credential(
        kind="Slack webhook",
        texts=(
            'curl -X POST -d \'{"text":"deploy done"}\' https://hooks.slack.com/services/T072XNCEIM/B0F895Q9UEK'
            + "/⟦e8tmIpldijiC"
            + "QgBaK2hcXzsK⟧",
            "ALERT_WEBHOOK=https://hooks.slack.com/services/T07NU0IG7C/B01HY9MWLB4/⟦RpCjcOwLQv4q" + "e6kDumyVJkdw⟧",
            "slack_configs:\n  - api_url: 'https://hooks.slack.com/services/T0Y23C28JY/B01RR3GRCCU/⟦J9U8A7BHMTr"
            + "U"
            + "FSvCDNau7jxY⟧'\n"
            + "    channel: '#alerts'",
        ),
        innocent=("https://api.slack.com/messaging/webhooks#create_a_webhook",),
    ),
    Credential(
        kind="Discord bot token",
        texts=(
            'client.run("⟦MTujdL8lQ2EUSJM7fHxSY7RIuo.GGNVUX.5e' + 'k8dxl3pagcyw7QMm2BjmNLM-lueP1KWYmT77⟧")',
            "DISCORD_TOKEN=⟦MTlZAi7qv4hpyX0Y45KpIXGq9P.GnmH61.tb" + "M7XoY3jOEeel1tq6pmInbKg_3zBFcj0-yhyX⟧",
            "mein Discord-Bot meldet sich mit ⟦ODN21rs64RyP7Zh9jY3AGIi7.XZnH"
            + "4g.WnvmBXDlf0_Yi1IpOBXUcmWIQNt⟧ an, aber ohne Intents",
        ),
        innocent=("guild_id = 1089245518823456789",),
    ),
    Credential(
        kind="Discord webhook",
        texts=(
            "https://discord.com/api/webhooks/1142711248216576142/⟦0W856GTbgeLR5N6xzARo_k7MeLblg41FKE"
            + "ATJWKHFk6gZM2tOp4vAor2pBBS6-kNGE_d⟧",
            'requests.post("https://discord.com/api/webhooks/1201435264614979663/⟦vZPlr3SHnKfu4mrlEKP01OH9M4UXN'
            + "JODb3"
            + 'ebSTPZRBxeKGE_RGabY8ITfdWNoSEu3f27⟧", json={"content": "build ok"})',
            'webhook_url = "https://discordapp.com/api/webhooks/1098159450379381953/⟦1a8LM6i_mlmIhEfk3SA7qRn8LM'
            + "oXfN-h8w"
            + '8q8f5uW16M-SXwjBcc7I_mAZB8ZUzGUc_L⟧"',
        ),
        innocent=("https://discord.com/channels/1089245518823456789/1142778123349915648",),
    ),
    Credential(
        kind="Telegram bot token",
        texts=(
            "Use this token to access the HTTP API: ⟦7127074677:AANWq2P_bX0L" + "0U8oxsHhXZPv7xySWmmCXUZ⟧",
            "https://api.telegram.org/bot⟦6256017694:AAPAMzZmFFC5" + "bWo_i-IGFMAMlErobf8H5Tt⟧/getUpdates",
            'TG_BOT_TOKEN="⟦8822148203:AAfMVCTRxrHW' + 'n34xSNBrdfTh49b0GYlG8SL⟧"',
        ),
        innocent=("chat_id=-1001948820117",),
    ),
    Credential(
        kind="Teams webhook",
        texts=(
            "https://nordvik.webhook.office.com/webhookb2/88a7d090-67ca-4bd5-9ce9-a8c4d9e95afd@a92c1fad-3401-46"
            + "70-95bf-4809a372c102/IncomingWebhook/⟦523fb5cd2c3e5c05"
            + "502222c32193cb6f⟧/17c6e526-6fce-447f-92ef-859eaab614a4",
            "https://prod-118.westeurope.logic.azure.com:443/workflows/a5fe7489fd1854dac64527ec1f705504/trigger"
            + "s/manual/paths/invoke?api-version=2016-06-01&sp=%2Ftriggers%2Fmanual%2Frun&sv=1.0&sig=⟦wCZEelz_"
            + "hnPwT4rGmU0phbASCInrpaslLcQT5vHQXW8⟧",
            "TEAMS_WEBHOOK=https://prod-07.northeurope.logic.azure.com/workflows/c59af66428fe5deac97713081b1979"
            + "91/triggers/manual/paths/invoke?sv=1.0&sig=⟦zcpx7exDqF5qEtgj79pQy"
            + "QVrLfg7wQ6MP-4t7MXKxk1⟧",
        ),
        innocent=(
            "https://teams.microsoft.com/l/channel/19%3a20e530fbfa1b397af0f7dce87dc9a2f6%40thread.tacv2/General",
        ),
    ),
    Credential(
        kind="Twilio auth token",
        texts=(
            'client = Client("AC079fabc33b644b4c9f8b4b0e6b682bf4", "⟦9522976a7cf2d402' + '67702c85bf00ca30⟧")',
            "TWILIO_AUTH_TOKEN=⟦cd7d619a7ae3a739" + "74ddfe4c2c075b0d⟧",
            "curl -u AC1a3a2ba393410b67b22ede275a17aceb:⟦283a002e07f0354c"
            + "7b968038d711e403⟧ https://api.twilio.com/2010-04-01/Accounts.json",
        ),
        innocent=("message SMc03ef2e1b7a17e7648fb80f59517c821 was delivered",),
    ),
    Credential(
        kind="Twilio API key secret",
        texts=(
            "TWILIO_API_SECRET=⟦YocXFwH7gZeaHfXe" + "VcvnxGJDNzu9DkIJ⟧",
            "const token = new AccessToken(accountSid, apiKeySid, '⟦rWm5PUYi8Str46OT"
            + "fiIyZ0TWDNgHhD9i⟧', { identity: 'desk-4' });",
            "twilio:\n  api_key_secret: ⟦nz3lMjpF3q4HfNLc" + "BJ7QdMSioCvRDexB⟧",
        ),
        innocent=("const token = new AccessToken(accountSid, apiKeySid, process.env.TWILIO_API_SECRET);",),
    ),
    Credential(
        kind="SendGrid key",
        texts=(
            "SENDGRID_API_KEY=⟦SG." + "1kRWe8gURqA_vtanh20HQe.H53mgZFcTXqZ0bJF3q2jX2gb4elQ9DVxEm8cgL_veSp⟧",
            "smtp:\n  host: smtp.sendgrid.net\n  user: apikey\n"
            + "  pass: ⟦SG."
            + "PEfWZkhs-xXzIHhdu7vAK5.W93XTtTq8wUkyDxnio92XOX-maUDrdlJC8HkE1cB4G0⟧",
            "sgMail.setApiKey('⟦SG." + "J6BSSqlAPFVmIPWpeTmpzV.emZuxcr7INUovsZwWVsYcihq8ND4H0OTFRSMaHNPq3t⟧')",
        ),
        innocent=("template id d-54f46194e3b385225c2e1f43d5fd27e3",),
    ),
    Credential(
        kind="Mailgun key",
        texts=(
            "curl -s --user 'api:⟦c617b2d9a45aac19afbc704e3"
            + "5daebce-9ed6efcf-e7ebc53c⟧' https://api.eu.mailgun.net/v3/mg.nordvik.no/messages",
            "MAILGUN_API_KEY=⟦key-" + "6466d745399242d452297e9b5037df3c⟧",
            "mg = mailgun.client({ username: 'api', key: '⟦81743ea7d6b410323ab138aed"
            + "9e4def0-b0f9d47e-079cf580⟧' })",
        ),
        innocent=("mailgun queue 20260214081922.1.C529FDE8C17492AD delivered via mg.nordvik.no",),
    ),
    Credential(
        kind="Mailchimp key",
        texts=(
            "MAILCHIMP_API_KEY=⟦c7b5f6bbf99c3d390b" + "9d3e2ecb9d8822-us21⟧",
            'mailchimp.setConfig({ apiKey: "⟦dbf1ac1800e9b2c070' + 'b5faa13b9f83fb-us6⟧", server: "us6" });',
            "Mailchimp key for the newsletter: ⟦720db45209e02391cd" + "7b3f97399dd83a-us14⟧",
        ),
        innocent=("audience id 8f41b02c9d on server us21",),
    ),
    Credential(
        kind="Postmark token",
        texts=(
            "X-Postmark-Server-Token: ⟦fce118cd-4934-43c7" + "-ac84-66cefa365251⟧",
            "POSTMARK_API_TOKEN=⟦72076cee-330a-49e7" + "-84e3-e8ae3250e4e5⟧",
            'postmark.ServerClient("⟦35cd1137-f615-43e6' + '-90df-14fe407301f6⟧")',
        ),
        innocent=('"MessageID": "ec43f395-d905-4d16-8463-0ca370e5f1da"',),
    ),
    Credential(
        kind="Resend key",
        texts=(
            "RESEND_API_KEY=⟦re_" + "9aIon5e5_4wsTNAFdfSfQcIrSHL0i3x9Y⟧",
            "const resend = new Resend('⟦re_" + "UYNX3xrV_RnKmzGKRRXwRZgphQmfVgZRi⟧');",
            "resend 的 key 已经换成 ⟦re_" + "SiOylosU_jN03qNbRwZ1OIqBk4krACMue⟧ 了",
        ),
        innocent=("re_compile_pattern_cache = functools.lru_cache(maxsize=512)(re.compile)",),
    ),
    Credential(
        kind="Brevo key",
        texts=(
            "api-key: ⟦xkeysib-" + "873154d1cab8b1da339b39c314de862adcce9415fd06c537a7e8554924ab639d-3movPMfoB6tzyh6a⟧",
            "BREVO_SMTP_KEY=⟦xsmtpsib-"
            + "7011838980f215b30fa7bfef25b830475350548d417e9b664b21a1aaed5659a6-T4BfpaaBQgtlp6np⟧",
            "configuration.api_key['api-key'] = '⟦xkeysib-"
            + "407b6d31f96b571565dcf98de792b5d3bf744f64a1ac02fdfe2253843f9994f1-hcGKD159MvLkNcWN⟧'",
        ),
        innocent=("configuration.api_key['api-key'] = os.environ['BREVO_KEY']",),
    ),
    Credential(
        kind="Stripe secret key",
        texts=(
            "STRIPE_SECRET_KEY=⟦sk_live_"
            + "512ceb8bQbHtCB4vuM4bFvWj3EQq2DmrVRxnCW0RZFxS1mWTD7w0ssG5qs7EN1XUxI3OQ0DRILSW6cgH0EzEnqKQ7qAQnh4ON6"
            + "2⟧",
            'stripe.api_key = "⟦sk_test_'
            + "51khrGE3oWqOxO85OHlVqeOl1I50ZmTlI7C0aFarIR29IKmeKl1N0Wx7ph2nbako9Tm8Vlzljkx0pBvjxRwtJkpOmHGwBTSjx6"
            + 's⟧"',
            "curl https://api.stripe.com/v1/charges -u ⟦sk_live_"
            + "51DunZ8BMAdsVbl8AzILqYqQ31HDykYmDuL3cFH8j7LnUSkICIj1INf8Tgq61YTfGeAvabLZGSN5bcaY4MRo499dLts3T34bZ1"
            + "a⟧:",
        ),
        innocent=("payment_intent pi_3bkso2OveKuDg7WeVYYbOY62 succeeded for cus_XkRK3s2bc7sDRV",),
    ),
    Credential(
        kind="Stripe restricted key",
        texts=(
            "STRIPE_RESTRICTED=⟦rk_live_"
            + "51KkNijQVSeURocPiIyNHuw2ZItGN6T4m88c52jN2NnAg5uJLvi1fd7qJv4ljWWhq9F3JHkxgABegq564DaiJ7X4FucrB2yYCE"
            + "1⟧",
            "the reporting job only needs read access: ⟦rk_live_"
            + "51iDSAw5d3OyecoWnAlVJmAwJAUyDpgCNXZ3goQHzxRpdxEQwjGY8q9m5SCtDRiVVyjtLUdTDpa9oHF2y8Uk8KgU94srLdICZ4"
            + "J⟧",
            "stripe listen --api-key ⟦rk_test_"
            + "51YyTmWU3jTmiqiNH0YmY5U8dMVe3rQ4lkdfbIkqPJnQCX59RyDacfuzqlE6qcgVySpIKdk97VtEDx2yNWgQW5fjVNziIFyXFn"
            + "m⟧ --forward-to localhost:4242/webhook",
        ),
        innocent=("price_1wDqgmznYcfswCYr14uAlu2z is archived, use the new tax_behavior setting",),
    ),
    Credential(
        kind="Stripe webhook secret",
        texts=(
            "STRIPE_WEBHOOK_SECRET=⟦whsec_" + "ydYvCjqVUCUjP5bfOAsKdR7KwDcVIjqI⟧",
            "> Ready! Your webhook signing secret is ⟦whsec_"
            + "8682069160b553010da7cc3a035c9f647c2a08c60d887a9f6f51a4988c83de2e⟧ (^C to quit)",
            "event = stripe.Webhook.construct_event(payload, sig, '⟦whsec_" + "oUgwFOvw1yh9REF0vwyvQ4NTgfiYm9u5⟧')",
        ),
        innocent=("event = stripe.Webhook.construct_event(payload, sig_header, endpoint_secret)",),
    ),
    Credential(
        kind="PayPal and Braintree",
        texts=(
            "PAYPAL_CLIENT_SECRET=⟦Ehz8gdRFpM9M1OG-y-1-05szxLyBEqeCiMTcRovb"
            + "zBBFAsYaZ4xudnxd-ECtggI3d5HuU6jvKTdu_sKZ⟧",
            'gateway = Braintree(access_token="⟦access_'
            + 'token$production$wb1vfqx2uam46ei9$4b473bf979d4772737c85fef834ae11d⟧")',
            "Braintree private key for the merchant account is ⟦ab82fa3c9ca176cf" + "d3fcde2b46a3b443⟧",
        ),
        innocent=("paypal transaction S1IJJ7MV9DPD36W53 was refunded in full",),
    ),
    Credential(
        kind="Square token",
        texts=(
            "SQUARE_ACCESS_TOKEN=⟦EAAA" + "vbA99OCNKHpAhrjZ1PXsai2PH0z13wn0_VFg6-HlxGHQa7NeLboDqghJI438⟧",
            "square application secret: ⟦sq0csp-xGp81Z-dj0p0F4SKLA" + "W9c96cGEK1zGMNd6Ez2N445_E⟧",
            "Square-Version: 2026-01-22\nAuthorization: Bearer ⟦EAAAUFOh-"
            + "CDvvrxmEXzHm3s4QY204HKHlX0e5NMyjATTbVv-fR7we9AaAJTl_I0s⟧",
        ),
        innocent=("application id sq0idp-1cTRiAEvD7nSebUHCXRMV2 is public",),
    ),
    Credential(
        kind="Razorpay secret",
        texts=(
            'client = razorpay.Client(auth=("rzp_live_PQ4oL8LDSVJcWX", "⟦pTeLE5xx0V1E' + 'czOcJIx1nGYz⟧"))',
            "RAZORPAY_KEY_SECRET=⟦DC2IelO4IJri" + "wabqN8sfSICb⟧",
            "curl -u rzp_test_saqF9MzwnkrEgP:⟦u873gvkRJjsl" + "fVvRDh8wIH8v⟧ https://api.razorpay.com/v1/orders",
        ),
        innocent=("order_Rb89kwP7mLfues is in state attempted",),
    ),
    Credential(
        kind="Adyen key",
        texts=(
            "X-API-Key: ⟦AQEe9yxQzFjX7zwJv5Vqoxj6siWr8D59Hbw8w92y"
            + "zjsFZAB5oqrqNspziI94INy-p6nlydXCAdd4du0LNvphUHFLrLCfwPUAOdKd0Ydr8G=-b3RGPgFR7j6Kawro⟧",
            'ADYEN_API_KEY="⟦AQF1J100P6fb8Que84wgoesPglSFUvwEBL1mCGcL'
            + "2AG8JQrh7VzVm1wXQUSuKz9ErKLYYfaMkTuaW3tvogn346TDDUgAqu2R9Lutuyz-MixMrtIirAgxjHTRTzd+A4jZ0EmLMDN8aE"
            + 'QHD6gSN+/=-Ct6V5FFHI5Jdp3Z5⟧"',
            "adyen hmac key for the notifications: ⟦76E9F460CBBFEED58ED6B25DEFC6774D"
            + "25F9FD3D48A2DBD1256ACDD862FA7A15⟧",
        ),
        innocent=("pspReference L2GCMSIJGCBGRXGC, resultCode Authorised",),
    ),
    Credential(
        kind="Plaid secret",
        texts=(
            "PLAID_SECRET=⟦651d68dc68380a0" + "bff58cc3258bce0⟧",
            '{"client_id": "4ff4293164aeaeb4457b7bf9", "secret": "⟦7ca499dec665c5f'
            + '46f7c4cd7d8ba92⟧", "institution_id": "ins_109508"}',
            '"access_token": "⟦access-' + 'production-33108ffe-b2aa-4665-8325-a4155b3df709⟧"',
        ),
        innocent=('"request_id": "v8A1vKqy0MqCPK3", "item_id": "bQHkOJ5mm2DQFaugal3HP5qpTWR5HI1K6LHRp"',),
    ),
    Credential(
        kind="Coinbase key",
        texts=(
            '{"name": "organizations/07a33e4e-13ff-464d-9fd2-0f21316e3081/apiKeys/28f51e58-260a-4daf-abc3-47f5e'
            + 'ceef9c6", "privateKey": "-----BEGIN EC PRIVATE KEY-----\\n⟦MHcCAQEEIN7XBr3hGoadudF12z8eeoSFW/hcNW4'
            + "i"
            + "4Uy2yAB9ORIzyd2XrBQLLhqy\\nFunvqUeM2qENFTTcL57c9utYx1Xk/9PVhSZq4mzsocUcQBkqatOrWUVHINr+Cweq\\n23+o"
            + 'a4SjvPOGmdPYnJLs+N07l6PuMqqbfJ==⟧\\n-----END EC PRIVATE KEY-----\\n"}',
            "COINBASE_API_SECRET=⟦EtsI4kD3AV0t71TDQV7Ruu+7IyWnnyQafoJQCVTc"
            + "C7gTHfbJT3BxpLpQzSvRh2pObh5lrR/vPZY/4qQjHTo5V5==⟧",
            'client = Client(os.environ["CB_KEY"], "⟦VWGxfvGViV1E7Yjs' + 'uX5A5SXzJlalDMZn⟧")',
        ),
        innocent=("tx 0x803b481b06b8f78f18321346901f129a83ca1c0afe1c34f88c85206db0dc3f18 has 12 confirmations",),
    ),
    Credential(
        kind="Vault token",
        texts=(
            "VAULT_TOKEN=⟦hvs."
            + "CAESpN9tX0xii1aH3px0CFTPqVCdfo0cTrQ0MV3L2ioQ5ZO7QWV3zNHLnqZB6upRx7RY_ROZQCBpHo7uxWMZ0x2TUwtshs1⟧",
            'curl -H "X-Vault-Token: ⟦hvs.' + 'y2ujkk4OuCcmv0Z76BBuw6Fg⟧" https://vault.nordvik.no/v1/secret/data/app',
            "Unseal Key 1: ⟦KAGJ" + "p7E/JYzGxtkWT+qls9Pvc31j63c6mWtyVIwgyh9a⟧",
        ),
        innocent=("vault kv get -mount=secret -field=url app/checkout",),
    ),
    Credential(
        kind="Terraform Cloud token",
        texts=(
            'credentials "app.terraform.io" {\n  token = "⟦ldoDvjcKAsJfrz.atlasv1.0Gglv6qRhWxcsj2m5'
            + 'yH2Rm733nOMuSbjFh1sjqivsh6yicQkqhXmqI5zap1qzksQaGF⟧"\n'
            + "}",
            "TF_TOKEN_app_terraform_io=⟦M8DU4yR3M0W8xy.atlasv1.atrnJfgU6UtuXQGvQ"
            + "1EmfvGhW1Mt6B4iaEsBQdToYvxjfPrWK0LgeziDuNIRpTSG6SD⟧",
            "TFE team token, bitte nur im CI nutzen: ⟦DLmoer2Kr8zEkq.atlasv1.nxvFZdrOmKF1jSTXz"
            + "s8yuvtTvIfr7Etc3m6UQQdLge5NCPMU6WygzxpLTlK4wgrbuwt⟧",
        ),
        innocent=("run-hbR1zrWmgmv5fRWV in workspace ws-BWvI1ucsv0CGohfy was discarded",),
    ),
    Credential(
        kind="Pulumi token",
        texts=(
            "PULUMI_ACCESS_TOKEN=⟦pul-" + "d53ed0c957ba12c0bf78a245ff62344c2cbea3c4⟧",
            "pulumi login with ⟦pul-" + "134f8476a166676b4b87f7af577aec5d98dd39cc⟧ works, stack is nordvik/prod",
            "PULUMI_CONFIG_PASSPHRASE=⟦Lachs-und-" + "Wacholder-88⟧",
        ),
        innocent=("urn:pulumi:prod::checkout::aws:s3/bucket:Bucket::assets-a588cf2",),
    ),
    Credential(
        kind="Consul and Nomad token",
        texts=(
            "CONSUL_HTTP_TOKEN=⟦4a638f88-a98d-4dd1" + "-952a-507d83fca5c7⟧",
            "nomad job run -token=⟦a0358191-e646-4388" + "-b002-506877e69177⟧ web.nomad.hcl",
            "SecretID         = ⟦e7548b32-5c5e-4cf9"
            + "-b2f1-579d8248d27a⟧\n"
            + "Description      = Bootstrap Token (Global Management)",
        ),
        innocent=("AccessorID       = 1bdd2639-8cff-4973-b338-a8293390e913",),
    ),
    Credential(
        kind="Doppler token",
        texts=(
            "DOPPLER_TOKEN=⟦dp." + "st.prd.6MvPzhFAF4nGNTNUV8cxN8P4NX8jyZnHRBlRmwmpC1C⟧",
            "doppler configure set token ⟦dp." + "pt.rxF4NIVMn4qR93n7d5TwhCM6MsbRRKTlj3faJPzj7WY⟧",
            'docker run -e DOPPLER_TOKEN="⟦dp.' + 'st.stg_eu.jGOMnJjBz5UoTG6DdxrPNBr19d1MhPTxBNXxdAvX⟧" nordvik/web',
        ),
        innocent=("doppler run --project web --config prd -- npm start",),
    ),
    Credential(
        kind="1Password service account token",
        texts=(
            "OP_SERVICE_ACCOUNT_TOKEN=⟦ops_"
            + "eyJzaWduSW5BZGRyZXNzIjoibm9yZHZpay4xcGFzc3dvcmQuZXUiLCJ1c2VyQXV0aCI6eyJtZXRob2QiOiJTUlBnLTQwOTYifS"
            + "wiZW1haWwiOiJnNm1ibDZsM20wZzZnQDFwYXNzd29yZHNlcnZpY2VhY2NvdW50cy5ldSIsInNycFgiOiJmM2JlZDU1OTAzYTNk"
            + "YzI4NGRhMWNjMjQzNjIxMGE4M2Y5Y2NkOGQwMmE4MmIxMTk0ODViMGM5ZjJkNDBlMTk3IiwibXVrIjp7ImFsZyI6IkEyNTZHQ0"
            + "0iLCJrIjoiZWtRZkVNWWM4ZDY0MzVvSDFORC1sMWc5NENoVFB6Sk5QTXI4WXpfZ0NlWCJ9LCJzZWNyZXRLZXkiOiJBMy1MMlhX"
            + "NVctTFhINUREIiwiZGV2aWNlVXVpZCI6InozYWYybnMzNjNndzN3YWZ2MnVwYm9tNm5pIn0⟧",
            'export OP_SERVICE_ACCOUNT_TOKEN="⟦ops_'
            + "eyJzaWduSW5BZGRyZXNzIjoibm9yZHZpay4xcGFzc3dvcmQuZXUiLCJ1c2VyQXV0aCI6eyJtZXRob2QiOiJTUlBnLTQwOTYifS"
            + "wiZW1haWwiOiI1M2diMnhjZGhzaWhpQDFwYXNzd29yZHNlcnZpY2VhY2NvdW50cy5ldSIsInNycFgiOiIxZmUxNWMzM2NkMmVl"
            + "Nzk0ZjY4YTE3OTdiNmIwNzdmMTAxOTIxYjA0MmYyNmNiOTk3NTlmYjE2MTE4YzRmOGIxIiwibXVrIjp7ImFsZyI6IkEyNTZHQ0"
            + "0iLCJrIjoiYU14ZUJFNUduY3BYeWFFV3pKTHFLelBIUTRpOHl2QmV5YmE3SW5IcGE5TyJ9LCJzZWNyZXRLZXkiOiJBMy1IQldR"
            + 'VzItU0RSUU42IiwiZGV2aWNlVXVpZCI6InNib2c0NnluNm56Y2FkN3BhaXFlbmJ3ZnJ3In0⟧"',
            "the emergency kit says: Secret Key ⟦A3-PMXOXY-9Z23KD-C4S" + "D7-5MHQ0-EYPQE-PDN5K⟧",
        ),
        innocent=('DB_PASSWORD="op://prod/postgres/password"',),
    ),
    Credential(
        kind="Bitwarden token",
        texts=(
            "BWS_ACCESS_TOKEN=⟦0.f6762fb5-afa8-4b49-8dc2-81bbb9fc61c3.W"
            + "ngnGPr3kL3ZQ8lD1V90AXVvc9ctqp:7NAJOxhjoy9+QLC2AJlZuf==⟧",
            "bws project list --access-token ⟦0.2a57c4fa-5c9c-4667-9bd7-f353561a13b3.w"
            + "mJIMXpeRBfBgMvLwzH7XPnDvgiNXp:qg0o2GcvvucaLE9JZBDDK2==⟧",
            'BW_SESSION="⟦8E+015wIEi3W0lKCtDeQHdvgpp1WKF2q/0DipxEn'
            + 'cBhgBhZ/cZPjfVmx+BU+UWd2r4FOA15ImCK7kF/NKGClwS==⟧" bw get item vpn',
        ),
        innocent=("bw get item e955e6d7-2cbf-4f60-9de3-85f805a4ce0f",),
    ),
    Credential(
        kind="Infisical token",
        texts=(
            "INFISICAL_TOKEN=⟦st."
            + "5c59399a8c7068a516643645.b81871fbccedc2c6b5b79bfac13f8a5d.d064f54110f854004915a49a57a0a13d⟧",
            "infisical login --method=universal-auth --client-id=391cd6e3-13ba-44dd-a1cb-4e16bb59cfff --client-"
            + "secret=⟦e9264f1e2cb67a9582d3f03bb167e7a8"
            + "b4ba86476d68e3475318aaaafb792ad7⟧",
            "INFISICAL_ENCRYPTION_KEY=⟦c7728da8752a50fb" + "31fd304e75f08545⟧",
        ),
        innocent=("infisical run --env=prod --path=/web -- node server.js",),
    ),
    Credential(
        kind="Kubernetes service account token",
        texts=(
            "kubectl --token=⟦eyJhbGciOiJSUzI1NiIsImtpZCI6InlEYW1UN1Nj"
            + "cnlWcHZMYXBfTE5MNXB3RkVjNnptRGFEUWN4bnRfckdzNWIifQ.eyJpc3MiOiJrdWJlcm5ldGVzL3NlcnZpY2VhY2NvdW50Iiw"
            + "ia3ViZXJuZXRlcy5pby9zZXJ2aWNlYWNjb3VudC9uYW1lc3BhY2UiOiJrdWJlLXN5c3RlbSIsImt1YmVybmV0ZXMuaW8vc2Vyd"
            + "mljZWFjY291bnQvc2VydmljZS1hY2NvdW50LnVpZCI6IjAxODI1ZTEwLTg3MjYtNDY0OC1hZTc4LTM2N2FjMzA3MWNhNiIsInN"
            + "1YiI6InN5c3RlbTpzZXJ2aWNlYWNjb3VudDprdWJlLXN5c3RlbTpkZXBsb3llciJ9.Z8yFFxmRKgQVWGaLpvVkLhrHWM50ucfm"
            + "Eq21YPmy_xRJml6QUmw33weovxGAdGCTC6icrPe3N8QCtgM3LTDgE0cKmc3clVHwsWSUClRWFTxNu1H_oQlaaJP7SyrCJei_Fh"
            + "ICYR-5_OBqHqxuycvHe6Cnvjb42gUnp4lnSUwusf3NmPU2BPP1MjLSkD4R3dVjiEtOKccFH0svFBke8gV1xWrN2kofN9m4GbIM"
            + "RbT-S0cJs8_BSOoqTDC_KWzjUNcVrAy2SfJXtltdkNm3Wqjirt_JDnicGGbS6WyLw5lZOGzuAJV4sh9DkB_123Xh1_YbT_r4G4"
            + "4wd4dFoLiNjoeTsQ⟧ get pods -A",
            "users:\n- name: ci\n  user:\n    token: ⟦eyJhbGciOiJSUzI1NiIsImtpZCI6IjRjdC1SYWh5"
            + "MlFSRmI3SVhGU0hXZVVFVWtkTmU3SWI1ZHNWc0JKdDBTNDgifQ.eyJpc3MiOiJrdWJlcm5ldGVzL3NlcnZpY2VhY2NvdW50Iiw"
            + "ia3ViZXJuZXRlcy5pby9zZXJ2aWNlYWNjb3VudC9uYW1lc3BhY2UiOiJrdWJlLXN5c3RlbSIsImt1YmVybmV0ZXMuaW8vc2Vyd"
            + "mljZWFjY291bnQvc2VydmljZS1hY2NvdW50LnVpZCI6Ijk4YzE2NTRjLWY0NjgtNDUxOS05NjM5LWMyNWNkYTljNDI3OCIsInN"
            + "1YiI6InN5c3RlbTpzZXJ2aWNlYWNjb3VudDprdWJlLXN5c3RlbTpkZXBsb3llciJ9.4DMXS1tpRWhiA-CE6EinyIf25c7InP5S"
            + "RcVvVkxqpgYIcy-h3xyAPt3fo2AXyHjxEtgEdp2j0nJZk4wp3kv-H0-uUGAlUwq4XqBe4TX4U25kQzHI94fQOORoBoRYFQwqN9"
            + "C40CPvHYoovnAFmB1ncdLV_hiFpZysnPHZyiMLZQfiYtczdtUAt-lwCRqFGznGUtmKRSn4_5_apDuwcjK99xS_Xa8A8SpAZj5G"
            + "07L2b_YmQ1loeCGwd0SU5LeJiq2KMxmpW7tZImdpT5GWQnYEoDfboHwYPhbKHgzazobqiN7gOmZwYKGp4s0Nq_4D76zhVPX8_Q"
            + "cOn-pstD8PmgO9Sw⟧",
            "$ kubectl create token deployer\n⟦eyJhbGciOiJSUzI1NiIsImtpZCI6ImQxRER2X3I5"
            + "cGViaXhXcFZkUWZydVQxOGZZZ0lzb0daTHk5dk5jTWpVOVkifQ.eyJpc3MiOiJrdWJlcm5ldGVzL3NlcnZpY2VhY2NvdW50Iiw"
            + "ia3ViZXJuZXRlcy5pby9zZXJ2aWNlYWNjb3VudC9uYW1lc3BhY2UiOiJzaG9wIiwia3ViZXJuZXRlcy5pby9zZXJ2aWNlYWNjb"
            + "3VudC9zZXJ2aWNlLWFjY291bnQudWlkIjoiNTYwOGZlMTktMjRjYi00MzA4LThmNWItMzM3ZjllNTMzY2Q3Iiwic3ViIjoic3l"
            + "zdGVtOnNlcnZpY2VhY2NvdW50OnNob3A6ZGVwbG95ZXIifQ.-3ND0iPN7mY19zfe4d4ypN6huZZjD1F6vFK7v93zRQs37nCksQ"
            + "nt95vJDFhBBfR6ajfDR-0I4Ar-W5KzRQ0kQwo3llrpfCN50XkC23-v_t1GOZOah4oxEEOBaSAD87TuqmB_IuVmb3p5GaVInoX2"
            + "KwWZCO0YI_bPdUpMcvlFpN2N4_HuLwSFOaEj0eQS8UDXON6KOnFlRsClGgj05VB-0equBSbdFm7Rs9bkLM5kHA13yrLz4bnVJX"
            + "zHmHtTW_ajq8c6TpsW9aOkjX5EdHpOOKkJZYduXVTpdppmvEjX-Ft5An0ny9fNVqv6FtyzlNy0U58BgAmEm7RIPhSAWJxgfA⟧",
        ),
        innocent=("kubectl create token deployer --duration=10m",),
    ),
    Credential(
        kind="kubeconfig client key",
        texts=(
            "    client-key-data: ⟦LS0tLS1CRUdJTiBSU0EgUFJJVkFURSBLRVktLS0t"
            + "LQpNSUlFcEFJQkFBS0NBUUVBbTVJZlp1aXR2N3JaY3ExR1JHQjVBaUtucDd0YmdBYnNJUGxjMlVSajZTSWFReDI3CjFDZ1ZTbj"
            + "dQbkkySjlYdk1BMFpDQ1NHRmlHZE95YllkVnF3OW83ZjRlUjBwMFNxdWVkY1NxTXZ1Q0Z3bm41RkIKbHg5MWtkWHRBT1poMzd2"
            + "S1cwY1BpRTZaRi95Y0dnbmVPZXlzM2Vrb0x5Y05YU1BZa25IZmhnalFXYUhRelcydgpyQmNNQm9rOU5rVWF4ZmFpbUZPNjBNZj"
            + "Y2TjJLVDVuR1drdVpMeXV6cUl5d0ErOHZKMkE1Nyszc1hRZ20zK0tvClpnem1QQ2o1TlJlVE44aG1GQUwyVUVuVjNISkt0em1z"
            + "dXNVTnoyaUdrWTY3ZDZDb3pkSkIzTldTUUE1aWJyMmMKMGVlbE41aUk4MzJFY3d0d2EycG9HY0JpdnJ5cElCelRnSXkxSmZMbT"
            + "Zpb0FISDZLQVlyOXU0VHRGc0ZwSFI5aQp3UFUrcWJZVC83Si95MDhTUWdvdnJ3Z2tXRTVmck80dkI1ZW1iRGZsQ2pmOU1MUVE5"
            + "VHNSU0JrYzRSaHRsTXBRCnNxK0ZwU2Z4VHZjVkhhQ01CYWpmYnNCcFBZL3ArQ2J4TGVnelNjRnJJTDNwR0FqUXBuaHgyUU9IRE"
            + "5ib1dUMDcKUlMwTmVhcmJTTHRSeHdRZDJLZldNMlhVd1QxaVpkTjVOMXdpYUNxdlJWVGpQYmpvN1F2WVBLZXVKNjRCME9ESAp0"
            + "NHhDWlFkUkM3TW05UEt6R240d0VjU3E1ejBWSHhoS0hLYkpZWkZBeVI0L2daZmVIY0g5bU56VCtBcXp4QmJjCklaTUpQUzU5Zj"
            + "RqV2dRMm5JWGhFSlJ0V3J4T1JHRXF2cXNrbVFaeCs1NytLMWRkN1FrWjlTTmxEcE5ud1dQbWQKRWtqaWxCcStGWUpzUGRNcDY4"
            + "NUUyRUl0R3VGQURXSkg3NHo3VWpjdzY1R3VKcGR0N2haRFRjMzZaazNpc0w5bwpuSG5acWZtYlpvZjNVUkR2U0UrOTc1Tzc3bV"
            + "QvZ2hmMGxaMmpFQ210cjdLMjYwVDNHUkRrbWFuYldBci85TWhOCmZhSER4SXVrNWVOdnZPa1RMNDBncFRBalpOM0NYc2hUWFJV"
            + "Q1RmbkN4UE42Ym9zSWIxNUg0WDdqaE9neXRMZ0wKRXlzbGlmQVAxNU5hRzFyZGtldVE5V0NMVzNqdkcycUlJRWhzdzN5WjBDdm"
            + "s0WSt0YXZTY1c3TEdCNkpFbkJmUwp2VXRJOEp6VWlYbmVDMGdLeDYzUno1bFZRZ3d1Zk9FRURPMmVxUkp6aFJvb012YlNKdFlG"
            + "ZU85Y01nVzBEWUhwCnA4eWtrMElwRytMdXBMaWcxZ1duQ2piUm0yZXFUV2FzMGdyWjFZWGk2ajQxMzdPUHBOWHl3TGl5bTVtbW"
            + "IzTXMKUDJTeEFYazNtc0t2Z3dobDl6NUFEdWR1ekVjWktnZUR0Q3c4dzNHNWlyamFLb3cxbElpQ3RRQklQY2hJa3ZWcQpTWUpC"
            + "Y0FERkJpVkw4YTMvN1YvbWcySy9laFpMKzdXMmZqUm1GRnkyTzJMTVdqNGpNOTZpRjdjemlNWWhtNUVzCjFXRFRPTVRiYjczcH"
            + "R0cXhSMDBnWHNKZlVRT0RpYVpWdHhzeHRLUXBaVW4xY01qNlRDYzhmd2E5VDRka2VPSHMKWWJiQVVqTFp4akhYd0JOVk9MSGxm"
            + "WGhrT0dLTllQOElYMjR2M0wrVGJoeEtMQ3h2UXp3NE1rcDN6ZkdIR011YQpJQTNiTjExR1lnNXorM0tsQmRSVi9aNFkxT29qWX"
            + "dtc2Y3U053bWdyZFRVSkRtZkt5RlVGT3ZNR1BHTTlCY1huCm0rUVJFbXRrRnQ4bzlXelBSZTY4S3RaWHB5aDkyczc5VE9NLzlk"
            + "cEszOENqTVNRTEp4cUcydGZKS1BsMFBkVHgKU1pVNE9BYWZGaGhVMFVrUHpuai9ya3A2eUl2NzFFelNhRHY2aU1zY20xSjV2ak"
            + "k0RkZtOHJBNGJTYmszdmJ2WgpidUNsSHF0dEppcWZzUnZ3cndDVUpMK2paMVRINGh4T0g2NElnK3pXeTdUWjRtVWw5SWUxV2E9"
            + "PQotLS0tLUVORCBSU0EgUFJJVkFURSBLRVktLS0tLQo=⟧",
            "users:\n- name: admin\n  user:\n    client-key-data: ⟦LS0tLS1CRUdJTiBFQyBQUklWQVRFIEtFWS0tLS0t"
            + "Ck1IY0NBUUVFSTVwVGxJeXQvMUxzaWs1SG41Nm5LQldBQ0hMM2tOYTlheWdnaklwMnNxRWRuU1JuMUczMzEzOEYKLzY0UnhYQW"
            + "ptQjZta1I5MjdkSC9FVDFudTg0R2M5YnJ2ZnBWOEJMbHBGYndXTmpadjZqZkVVOXptTzI1MUJQWgpURWZCUmxJNlJ6ZUNUYzhk"
            + "cit6SjZkYTBTakFFcHkxejhnPT0KLS0tLS1FTkQgRUMgUFJJVkFURSBLRVktLS0tLQo=⟧",
            '"client-key-data": "⟦LS0tLS1CRUdJTiBFQyBQUklWQVRFIEtFWS0tLS0t'
            + "Ck1IY0NBUUVFSVN0MGZJM2hIK0F1U0VSWlRHZUFHMjlpMjlWNHpsTS9nOGxtMlhHRkQzQ1FGMHA1V29JWlJrdjkKN3BzWE9NQ2"
            + "VkbjZ3VWNGenlFNVJvNGRsRkt3OHI3c1pDUFUwdmw1cVBNMDV5eml3TSswNzVuVFl0eC8wVStrZgpOdjhiY0hma1U3STZJSnBQ"
            + 'VWN6eUVEZ0w0dXdpMHZmemN3PT0KLS0tLS1FTkQgRUMgUFJJVkFURSBLRVktLS0tLQo=⟧"',
        ),
        innocent=("server: https://10-42-0-1.k8s.nordvik.no:6443",),
    ),
    Credential(
        kind="Kubernetes secret manifest",
        texts=(
            "apiVersion: v1\nkind: Secret\nmetadata:\n  name: pg\n"
            + "data:\n"
            + "  password: ⟦SUlFYWdtZG0y"
            + "LmZXaFNZWWFK⟧",
            "stringData:\n  redis-password: ⟦AVHL" + "IWOc?QaR7MzmdmWzdO⟧",
            "kubectl create secret generic pg --from-literal=password='⟦c0Q%N9z0K-" + "1KHFzo4xff⟧'",
        ),
        innocent=("kubectl create secret generic pg --from-file=password=./pg.txt",),
    ),
    Credential(
        kind="Tailscale key",
        texts=(
            "tailscale up --authkey=⟦tskey-auth-"
            + "kwjUUzYuhWX8hCNTRL-YFUhYeCYC7XhuHe8a4ukmRoPdaha1xZU⟧ --hostname=nas",
            "TS_API_KEY=⟦tskey-api-" + "kNyRR5fTwBrKxCNTRL-fZqPI7mc5N4CpGF4jALLUja2ArBpM8Do⟧",
            "    environment:\n      TS_AUTHKEY: ⟦tskey-client-"
            + "kzQQIB3yrX1xdCNTRL-R7Z09ZCExy8qKhYAAK3hw4pvHqq6tG72⟧?ephemeral=false",
        ),
        innocent=("Auth keys for Tailscale expire after 90 days at most.",),
    ),
    Credential(
        kind="Cloudflare token",
        texts=(
            "CLOUDFLARE_API_TOKEN=⟦3s1HjDU7Hachv8RD2N5u" + "Hn-K0cXiQLGeqJIWdHTO⟧",
            'curl "https://api.cloudflare.com/client/v4/user/tokens/verify" -H "Authorization: Bearer ⟦i-3c2qTW'
            + "IqlbbMh-8aAv"
            + 'u_sIcrD8byc_WuqyTufz⟧"',
            "dns_cloudflare_api_token = ⟦DqpAKJh5REGtwNieixKi" + "DJYpQ7g_aSvEBQxgg10H⟧",
        ),
        innocent=("zone id 4b59e05c80bce4f3d5878244c5f0f496, CF-Ray 16d1d9722b6ae45f-FRA",),
    ),
    Credential(
        kind="Cloudflare global key",
        texts=(
            "X-Auth-Key: ⟦d9b37f236af23e1632" + "bb4e564977d90a5b49f⟧",
            "CF_API_KEY=⟦261eb0e8288c371c5d" + "b60f2639d667a3f68fa⟧",
            'cloudflare_global_api_key: "⟦55be48d3033e030866' + '63235ee545ec0e3c37c⟧"',
        ),
        innocent=('cf-cache-status: HIT\netag: "bc0f7546e61628918761f3ffc23eb7d1"',),
    ),
    Credential(
        kind="Fastly token",
        texts=(
            "Fastly-Key: ⟦XgIm9-7MrmNCLtiI" + "8CBR_gC9WdDNct9W⟧",
            "FASTLY_API_TOKEN=⟦eTi0L_BvJ7JKdck-" + "4x3bAgdNYqb4lv4d⟧ fastly purge --all",
            'provider "fastly" { api_key = "⟦2DzCKstI_nYMNwWB' + 'tiD7M-P3asTa1GRk⟧" }',
        ),
        innocent=("x-served-by: cache-fra-eddf8230075-FRA, x-timer: S1772438122.004519,VS0,VE1",),
    ),
    Credential(
        kind="Fly.io token",
        texts=(
            'FLY_API_TOKEN="⟦FlyV1 fm2_lJPEQrwqnBs8YXUi2xUO5rs21TKuSb'
            + "yeAiOvjhKVH/haNzhDocPctxG0us/avhBdUr2HqsEIkKTdr0tVYVJz9lBaMW0WvLgq4AVUV4SardPIkbFhf2TcmsfnbZkfhKhd"
            + "tPzUKeSF8bn/2mHa1h7Lflb2i/5kBqlae8PDPtWxfnus8FmDjZu58g77BReh5InzzV2905lPfzDHWHyGrS5Pz2qM8wXR6ONErU"
            + "ivdXnrguw/dd2IYuvHL5Q8vGNcgNjd8v/MhGzMLjL3mJUW4wPX1zfKxRlduIngOeZVtOQxiKdcsi3fDa35I1X7zcY09sXwwJ8p"
            + 'Ez8leT3xA++hQBRkqGfu5nCPTRoeITlI7MEV9fE1==⟧"',
            "fly deploy -t ⟦fm2_lJPEtvBRPoNZl5NTYjJRopCcjkK+lMjrKZDT"
            + "1FzFYf+WPMIT8nXDnVPuTacaIkGhgwf1rtXGJKGKOSY6bxswoJ+3e4g4zwzTuzq8FCqeQ05GV8rPEfV7+tcI19r61XUY5Whhs3"
            + "GMx18eJf8bsG8wjWiZ0KFBfrlczJa8m95GC3Q1aX1hMTRKeowSH8i96o0kszkZbM+Tt771dMcHM97rO9RuER6u+kc1PIBjhpiR"
            + "uiGewNUlN6FlR4vCalJux7TftSHDFN/rA+91QzRHBUHbFbwyxoy9swKIoYKIoN9ouNkmhsUo=⟧",
            "access_token: ⟦fo1_8Rw8iK9ni1aoPaH038o" + "WyIiMv-UVJmOAle_XSjLpCEt⟧",
        ),
        innocent=("fly logs -a web-summer-6213 --region fra",),
    ),
    Credential(
        kind="Vercel token",
        texts=(
            "vercel deploy --prod --token ⟦g4LLvABGIMcj" + "Ja1Uadka0CM6⟧",
            "VERCEL_TOKEN=⟦5iF8O3I1bCGv" + "QBDOrRoLz5rX⟧",
            "Authorization: Bearer ⟦vcp_" + "tBuDp5zbYFmF8zCWiAXFeIirQbMNcgRFpmS0OGVUZNwlYlFiSQdZzwOc⟧",
        ),
        innocent=(
            "VERCEL_ORG_ID=team_7l1iN9iP8TeSL3pVY2ksYrn8\n" + "VERCEL_PROJECT_ID=prj_Kxo1R30vQIBDXuMBICVdfAMOjmlj",
        ),
    ),
    Credential(
        kind="Netlify token",
        texts=(
            "NETLIFY_AUTH_TOKEN=⟦nfp_" + "qfKU7iF2imM370LyHxkfoI2B0s6BOIPThjua⟧",
            "netlify deploy --auth ⟦nfp_"
            + "SfkiGBgLpmdA4ZwRpLxpWDZsESh3IRVhzLs3⟧ --site da35fa3d-15d7-4e75-b089-7d5136ab2fb9",
            "Netlify build hook: https://api.netlify.com/build_hooks/⟦0d042fea2371" + "0bc563096755⟧",
        ),
        innocent=("NETLIFY_SITE_ID=d2d0a0e8-b290-4e96-9b1c-2653352284fa",),
    ),
    Credential(
        kind="Heroku key",
        texts=(
            "HEROKU_API_KEY=⟦HRKU-" + "AAGiN3Y0OVlGBN4pgYor7uPvPwYpDQRJRh3iQPqr94xwxyYQUE2t98pL5FGI⟧",
            "machine api.heroku.com\n  login ops\n  password ⟦b7643860-e58b-4ea5" + "-b1ac-711ef90828d1⟧",
            "Token:       ⟦HRKU-" + "aa5eb242-aaa2-4c44-a4da-c49075445eb0⟧",
        ),
        innocent=("heroku logs --tail --app nordvik-web-staging",),
    ),
    Credential(
        kind="Render and Railway token",
        texts=(
            "RENDER_API_KEY=⟦rnd_" + "5TxEJb0U5X7QMtPOsAfTq0Kkgruc⟧",
            "RAILWAY_TOKEN=⟦bbecc4c3-54cf-4685" + "-8bb5-c11e187a6276⟧ railway up --detach",
            'curl -X POST "https://api.render.com/deploy/srv-gdthxr2ssdkmwki8ni0c?key=⟦l-2jKTV-iHu⟧"',
        ),
        innocent=("https://dashboard.render.com/web/srv-348gwnzn03w4tx97cw4f/logs",),
    ),
    Credential(
        kind="Supabase key",
        texts=(
            "SUPABASE_SERVICE_ROLE_KEY=⟦eyJhbGciOiJIUzI1NiIsInR5cCI6IkpXVCJ9.eyJ"
            + "pc3MiOiJzdXBhYmFzZSIsInJlZiI6InV4Y3ludG51Y3ZuZHB0ZXZ5c2N0Iiwicm9sZSI6InNlcnZpY2Vfcm9sZSIsImlhdCI6M"
            + "Tc4NzA1MjE3NSwiZXhwIjoyMTAyNDEyMTc1fQ.UxOQHE-bi3rQUIhSt8C0UuVIu63qhnVLNa8zJ1hOB1M⟧",
            "createClient('https://hmntiifyuensumaboqea.supabase.co', '⟦sb_secret_"
            + "FyI_aBoc1jy0bdNYpJuzBr_v6zvruQD⟧')",
            "supabase login --token ⟦sbp_" + "2bc6078e867c1312ac9866817dc6b5e8743068d1⟧",
        ),
        innocent=("supabase link --project-ref qnxwtrlfhzkovbyemads",),
    ),
    Credential(
        kind="PlanetScale and Neon",
        texts=(
            "DATABASE_URL='mysql://os5vp6orlhud73aw9bgs:⟦pscale_pw_"
            + "mLjGpA1GlM0Nqjs3EcJIlDVddKe7JzGkQ4RcyKyR1kV⟧@aws.connect.psdb.cloud/shop?sslaccept=strict'",
            "pscale org list --service-token ⟦pscale_tkn_"
            + "UMIf_4QhqoQsUPXWOCZXNTDvdSOcnm__TGNDwyPfMGd⟧ --service-token-id 1tvpxqh1v2lf",
            "postgresql://neondb_owner:⟦npg_"
            + "K34RtCKtuREC⟧@ep-cool-darkness-a1b2c3d4-pooler.eu-central-1.aws.neon.tech/neondb?sslmode=require",
        ),
        innocent=("ep-cool-darkness-a1b2c3d4-pooler.eu-central-1.aws.neon.tech",),
    ),
    Credential(
        kind="Neon API key",
        texts=(
            "NEON_API_KEY=⟦napi_" + "b9bj371ngylqn6iblu3wukun2kkw5xtedfulf60s9fuqbjvvke5yzpos4f0dr1y4⟧",
            "neonctl projects list --api-key ⟦napi_"
            + "dljx46ww4ls804db4ogvdt5an4l37q5nb8vsn13wq0argo4or6t7qu06j1nhc6tp⟧",
            '"neon": {"command": "npx", "args": ["-y", "@neondatabase/mcp-server-neon", "start", "⟦napi_'
            + 'no5w6flj68y638xpjs01rkgwiz33tlm5adjnpgt3qfkn3hy8fpcla1pvpv5i3yga⟧"]}',
        ),
        innocent=("branch br-wispy-heron-7j1iv19k is ready",),
    ),
    Credential(
        kind="MongoDB connection string",
        texts=(
            "MONGODB_URI=mongodb+srv://shop:⟦awvP5ufT"
            + "8DtNTpLO⟧@cluster0.k3x9q.mongodb.net/?retryWrites=true&w=majority",
            "pymongo.errors.OperationFailure: bad auth, uri was mongodb://root:⟦Wald%4"
            + "0kauz71⟧@db1.intern:27017/admin",
            'mongosh "mongodb://backup:⟦uAdHLtctyq' + 'EQqtkKELy2⟧@10.20.0.14:27017/shop?authSource=admin"',
        ),
        innocent=('mongosh "mongodb://localhost:27017/shop"',),
    ),
    Credential(
        kind="Redis URL",
        texts=(
            "REDIS_URL=redis://:⟦ov6ETdQ1oqjb6vg7"
            + "LcO3HeuIXiwxwof0⟧@redis-17713.c300.eu-central-1-1.ec2.cloud.redislabs.com:17713/0",
            "celery -A shop worker -b rediss://default:⟦AXND"
            + "jSYeN3AnmtO9bo2Ub5GHdaK6R75eDp1mAuglTxun8ZYYjqwt⟧@eu1-quick-mole-38122.upstash.io:6379",
            "requirepass ⟦1D9Wnolo31M1L6" + "cOyvDRZTu7jXxL⟧",
        ),
        innocent=("redis://redis:6379/0",),
    ),
    Credential(
        kind="PostgreSQL URL",
        texts=(
            "DATABASE_URL=postgres://shop_rw:⟦xnvTGuuNi" + "QOBGUcYTP⟧@pg-primary.intern:5432/shop",
            "sqlalchemy.exc.OperationalError: could not connect (engine: postgresql+psycopg://report:⟦rEOiPKi"
            + "kWfYE79⟧@10.4.0.9/warehouse)",
            'psql "host=pg.nordvik.no user=admin password=⟦7f7uBMxx' + 'MxPbfmEL⟧ dbname=billing sslmode=require"',
        ),
        innocent=(
            "postgresql://user:password@localhost/dbname is the general form of the URL",
            "DATABASE_URL=postgres://shop_rw:${PG_PASSWORD}@pg-primary.intern:5432/shop",
        ),
    ),
    Credential(
        kind="MySQL and AMQP URL",
        texts=(
            "mysql -h db2.intern -u wordpress -p⟦KN6ORDn" + "0SHL7BxI⟧ wp_prod < dump.sql",
            "CELERY_BROKER_URL: amqp://worker:⟦0VLVKVWyeXL" + "f2LWPiB8HFP⟧@rabbit.intern:5672/jobs",
            "mysql://root:⟦Gr4nit" + ".stein⟧@127.0.0.1:3306/kasse",
        ),
        innocent=("mysql -h db2.intern -u wordpress -p wp_prod < dump.sql",),
    ),
    Credential(
        kind="JDBC URL",
        texts=(
            "spring.datasource.url=jdbc:postgresql://pg.intern:5432/core?user=core&password=⟦zAKRDbT9"
            + "8BYvu43j9⟧&ssl=true",
            "jdbc:sqlserver://sql1.intern:1433;databaseName=erp;user=sa;password=⟦9ImkZ1f" + "Nr!wt7ez⟧;encrypt=true",
            "Server=sql1.intern;Database=erp;User Id=erp_app;Password=⟦SY_"
            + "QVenzSA4s#sESIC⟧;TrustServerCertificate=True",
        ),
        innocent=("jdbc:postgresql://pg.intern:5432/core?ssl=true&ApplicationName=core-batch",),
    ),
    Credential(
        kind="Snowflake",
        texts=(
            "SNOWFLAKE_PASSWORD=⟦gWM?JOmWQa" + "REzp5wVUpz⟧",
            'snowflake.connector.connect(user="ETL", account="xy12345.eu-central-1", password="⟦NQ6-Uu8gF'
            + '6U03Mxg5p⟧")',
            "snowflake programmatic access token: ⟦eyJhbGciOiJSUzI1NiIsInR5cCI6IkpXVCJ9.eyJ"
            + "zdWIiOiI1MTcwNzM1IiwiYXVkIjoibW9iaWxlIiwiaWF0IjoxNzU2NDY2MzA4LCJleHAiOjE3NTY0Njk5MDh9.OokqdnZRtFta"
            + "VjjBii5sy2IRJ0O5tjTvtGw7mre1geHcTQWXmuQi9_d_rv4FRJtZr6fKsxSO1vG45z-VLHboIkIql2DXtUT0bxCS3mgsig5sJy"
            + "1XoOH9g9cb6mqt1t1ARPXu4ziV023O_VnKpUa1bEV3aozOZVlxrHbn8UhqsLCYM9jrrfomp2jXxuSxl4VQtV3gmRW9ZX7czk45"
            + "SAmfB4Q5wWZLvXA2S4yzy1qGXbaK1U5USDvYBJPqolsplOPeLGb0cgefdopUluNjP5Vd5jzOqad2H4WD-TVKaTmXt93Tp1OU7w"
            + "hb69xfb_iRjTRDw7-ry9dWhAwVyn8AhtJpyQ⟧",
        ),
        innocent=("account: xy12345.eu-central-1, warehouse: COMPUTE_WH, authenticator: externalbrowser",),
    ),
    Credential(
        kind="Databricks token",
        texts=(
            "DATABRICKS_TOKEN=⟦dapic6d44e6e518c7a" + "060eea681b05d63de0⟧",
            "[DEFAULT]\nhost  = https://adb-6184719283301187.7.azuredatabricks.net\n"
            + "token = ⟦dapi8e4d4c9495765ce"
            + "6b78b2495e004a6b5-2⟧",
            "jdbc:databricks://dbc-a1.cloud.databricks.com:443;AuthMech=3;UID=token;PWD=⟦dapi326f87b99228e8"
            + "29042d8a87b56039e9⟧",
        ),
        innocent=("https://adb-6184719283301187.7.azuredatabricks.net/?o=6184719283301187#job/88213",),
    ),
    Credential(
        kind="Elastic API key",
        texts=(
            "Authorization: ApiKey ⟦RmxyVW5MNG45Ti0xYzBUYTdYaC06ei" + "1nQUxVWHJJaW9wRXNHT1NMdDF6dA==⟧",
            'es = Elasticsearch(cloud_id=CLOUD_ID, api_key="⟦b0tzQWo3d25NTW41QUkxRkdJTzk6X0'
            + 'xmWEp0a195Y1BYNHQtdXluaERuUw==⟧")',
            "Password for the [elastic] user (reset with `bin/elasticsearch-reset-password -u elastic`):\n"
            + "  ⟦tSLWRES8*X"
            + "0bSs=zMzfx⟧",
        ),
        innocent=(
            "HTTP CA certificate SHA-256 fingerprint:\n"
            + "  a6f7db7a498ad2554de6d7e1701d09e1ed8d22730c1cdc2e284b4f78fc70ea96",
        ),
    ),
    Credential(
        kind="Datadog key",
        texts=(
            "DD_API_KEY=⟦c96edc6c77a38f51" + "bf3644d6c8651287⟧",
            "DD_APP_KEY=⟦28b1642b90962be302aa" + "f36cef2e0f7de3a82bcb⟧ dog monitor show_all",
            'curl -X GET "https://api.datadoghq.eu/api/v1/validate" -H "DD-API-KEY: ⟦24d182a91d9adfa2'
            + '868d07618d00ae97⟧"',
        ),
        innocent=("dd.trace_id=6812374612983746123 dd.span_id=1283746192837461928",),
    ),
    Credential(
        kind="New Relic key",
        texts=(
            "NEW_RELIC_LICENSE_KEY=⟦eu01xxe9f54e507049f1" + "95dbe77ee0b3fec3NRAL⟧",
            "Api-Key: ⟦NRAK-" + "2H0QGGDUIVYNTJOVWGRMYR6JTGC⟧",
            "new_relic:\n  insert_key: ⟦NRII-" + "UkagC05-staRVOvLf-4KkJQu70y4Ac-m⟧",
        ),
        innocent=("NEW_RELIC_APP_NAME=checkout-eu01",),
    ),
    Credential(
        kind="Sentry DSN",
        texts=(
            "SENTRY_DSN=https://⟦83b5a5a6c79f2669" + "78ab8f4415a933e6⟧@o4506712.ingest.de.sentry.io/4506718812340224",
            'sentry_sdk.init(dsn="https://⟦e68f4ff7685f7fca'
            + '1f7f8dbe5625c2c6⟧@sentry.nordvik.no/14", traces_sample_rate=0.1)',
            'Sentry.init({ dsn: "https://⟦13c77a3f87114357'
            + '96c0e3b4fa00484d⟧@o88213.ingest.us.sentry.io/4507001" });',
        ),
        innocent=("Sentry event aff4eb2e745471000530e923c0d04b04 in issue CHECKOUT-4F2",),
    ),
    Credential(
        kind="Sentry auth token",
        texts=(
            "SENTRY_AUTH_TOKEN=⟦sntrys_"
            + "eyJpYXQiOiAxNzcyNDM4MTIyLjAwNDUsICJ1cmwiOiAiaHR0cHM6Ly9zZW50cnkuaW8iLCAicmVnaW9uX3VybCI6ICJodHRwcz"
            + "ovL2RlLnNlbnRyeS5pbyIsICJvcmciOiAibm9yZHZpayJ9_+RJWwp2T0p6NIPRN0CcKFc9ArimRrHRv013pLPXeBxS⟧",
            "[auth]\ntoken=⟦sntryu_" + "32d36de1561fc0cf62d8ea0d21fcad62f2401966e299ae5c01eeadf086c01a38⟧",
            "sentry-cli --auth-token ⟦sntryu_"
            + "96599ff852e6c312f78ddcbc2f3721284d4632bfb285ada66395f46dc27a5c24⟧ releases new 4.2.1",
        ),
        innocent=(
            'sentry-cli releases set-commits 4.2.1 --commit "nordvik/web@2d0d066d889a888fd6255b63b393305449ebff'
            + 'a2"',
        ),
    ),
    Credential(
        kind="Grafana token",
        texts=(
            "GRAFANA_TOKEN=⟦glsa_" + "ZKrkhraWQaBqAA9E8wujZvNunVAH9RXw_7e9bfb69⟧",
            "remote_write:\n  - url: https://prometheus-prod-24.grafana.net/api/prom/push\n"
            + "    basic_auth:\n"
            + "      username: 1182291\n"
            + "      password: ⟦glc_"
            + "eyJvIjogIjExODIyOTEiLCAibiI6ICJwdXNoLWNoZWNrb3V0IiwgImsiOiAiSDlVcGRwVTNTNW1DM3dBdW9wakFWd0xvIiwgIm"
            + "0iOiB7InIiOiAiZXUifX0=⟧",
            'curl -H "Authorization: Bearer ⟦glsa_'
            + '1PmDGZFY4nSn5eIqtDXbQwL2mHxPK5Sf_2573681d⟧" https://nordvik.grafana.net/api/org',
        ),
        innocent=("https://nordvik.grafana.net/d/ae81kxq02/checkout?orgId=1&from=now-6h",),
    ),
    Credential(
        kind="PagerDuty key",
        texts=(
            "Authorization: Token token=⟦u+58_lv_TA" + "X5URWDohQ5⟧",
            "pagerduty_configs:\n  - routing_key: ⟦4bc4571515f0552a" + "475c9c360533a85d⟧",
            "PAGERDUTY_API_KEY=⟦0l22th7VVZ" + "NGU98eXoCW⟧",
        ),
        innocent=("PagerDuty incident Q0KT34W1FSSZH0 was acknowledged",),
    ),
    Credential(
        kind="Honeycomb key",
        texts=(
            "x-honeycomb-team: ⟦hcaik_" + "014m6wlrj5m2pa1zvxje7wsm1e58h7unt0s4rhwxjbtzfxy4bo3828f37a⟧",
            "HONEYCOMB_API_KEY=⟦4AoHAzFLjOc" + "gRtNGZ5mJVp⟧",
            'OTEL_EXPORTER_OTLP_HEADERS="x-honeycomb-team=⟦HNOoDRk4GTl' + 'l6XujYwyMBb⟧"',
        ),
        innocent=('OTEL_EXPORTER_OTLP_HEADERS="x-honeycomb-dataset=checkout"',),
    ),
    Credential(
        kind="Splunk HEC token",
        texts=(
            'curl -k https://splunk.intern:8088/services/collector -H "Authorization: Splunk ⟦d58f0d0c-9765-440'
            + "8"
            + '-a773-811913ba9eb1⟧" -d \'{"event":"hi"}\'',
            "splunk_hec_token: ⟦13c18129-1513-4118" + "-bfd9-d1f90ca8b278⟧",
            'logging:\n  driver: splunk\n  options:\n    splunk-token: "⟦0c483976-1992-43d9' + '-a151-a1c0dc5ca5d2⟧"',
        ),
        innocent=("request_id=3aeeae91-3ef7-4da1-b2ee-83a8628a2bbd status=200 duration_ms=18",),
    ),
    Credential(
        kind="Algolia admin key",
        texts=(
            "ALGOLIA_ADMIN_KEY=⟦180111f8630e87d6" + "621d1fda9a859685⟧",
            "algoliasearch('B1G2GM9NG0', '⟦d3c91cb48c77c890" + "ca2aabb34d01a5e0⟧').initIndex('products')",
            "X-Algolia-Application-Id: LK42BN7QWE\nX-Algolia-API-Key: ⟦c5216bda574a1c05" + "a49a78efa526dddf⟧",
        ),
        innocent=('"objectID": "c91ea9b1e678d32ade14684613c3c347"',),
    ),
    Credential(
        kind="Mapbox secret token",
        texts=(
            "MAPBOX_DOWNLOADS_TOKEN=⟦sk."
            + "eyJ1IjoiM8hZikv6KQE64UY2HDyhCIvXrNGUP8jK1lQO3i4DsgdmL3QJpvOvAc.JD2a45XpgDX919w0TojYcS⟧",
            "machine api.mapbox.com\nlogin mapbox\npassword ⟦sk."
            + "eyJ1IjoiCobTTPEUOIqqQPTyq2TZOGbxyheK8Sjh6QgKxI9jBagSCrp3Mfuvfx.tKkNbz0qmz6j2FDFDeicKc⟧",
            'maven { credentials { password = "⟦sk.'
            + 'eyJ1IjoiJfmLVjMYuW6W6dP8XtNrFm27MzOggHDPddhq2aAlFbVXJzEqkm.-1FduYxsvSWFps17GmFEDn⟧" } }',
        ),
        innocent=("style: 'mapbox://styles/mapbox/outdoors-v12'",),
    ),
    Credential(
        kind="Shopify token",
        texts=(
            "X-Shopify-Access-Token: ⟦shpat_" + "186e99a0acd8a4478ea0c9662346cf62⟧",
            "SHOPIFY_API_SECRET=⟦shpss_" + "c72ce8cc93b2b3ea4c5abf7770a02330⟧",
            "shopify theme push --password ⟦shptka_"
            + "1864ac173aac56d8566cf588ae483533⟧ --store nordvik-test.myshopify.com",
        ),
        innocent=('"admin_graphql_api_id": "gid://shopify/Product/8123499201845"',),
    ),
    Credential(
        kind="Notion token",
        texts=(
            "NOTION_TOKEN=⟦ntn_" + "25168810525mZe0x1yWANPODEc5QdnlpfRKBtGfnctloH5⟧",
            "const notion = new Client({ auth: '⟦secret_" + "aopYk7cjLnMOI85YnnaqdvVK51rMXCEjjAQEcBXhFWt⟧' });",
            '"OPENAPI_MCP_HEADERS": "{\\"Authorization\\": \\"Bearer ⟦ntn_'
            + '292166575726UqkQR7JtY834jDfLk4ZnFYREM8r2iyp6jW⟧\\", \\"Notion-Version\\": \\"2022-06-28\\"}"',
        ),
        innocent=("https://www.notion.so/nordvik/Roadmap-4201ef8e723f9577e453149587974f33?pvs=4",),
    ),
    Credential(
        kind="Linear key",
        texts=(
            "LINEAR_API_KEY=⟦lin_api_" + "KzhsuUNvk45k7W5GeUGYV6Q2wVqgKEbgzZ6j1GQO⟧",
            'curl -H "Authorization: ⟦lin_api_'
            + 'I9pQqF11Y1OTB4REhCkNOwHPEk5ePd1Cgh4bm4lr⟧" https://api.linear.app/graphql',
            "linear webhook secret: ⟦lin_wh_" + "QXMfa83vKKx9eBpfLn9R9pO08XlChMnLMgDWoTu3⟧",
        ),
        innocent=("branch mw/nor-1182-lin_api_client_refactoring",),
    ),
    Credential(
        kind="Asana token",
        texts=(
            "asana.Client.access_token('⟦2/0205700254996635/628908599905727" + "0:85598943f0e68bb67c42a40139bf18ad⟧')",
            "ASANA_PAT=⟦1/4540334147128879:9a77f4" + "e5d198ebf00befc67a82bcc4d3⟧",
            "my Asana token: ⟦2/3917419064153385/510416286289616" + "5:bddddeeb3a92c4a1d3e0201b04699d90⟧",
        ),
        innocent=("https://app.asana.com/0/1204882019383741/1204882019383755/f",),
    ),
    Credential(
        kind="Atlassian token",
        texts=(
            "JIRA_API_TOKEN=⟦ATAT"
            + "T3xFfGF09s_-j2-G7N_0aiRqR94VggCJI1LoGk-DIKibpxQHHWrInHapiqiceQ-b9hQ0zChKtMUIIyZ4TSDqgt6y0EEm61Nw0o"
            + "Vk55xNGQRBlXeWYf4w-isgs8J2rXd9umLGQPLQ-k6uk2zAjH0tFIOCR3mrY7u3J0isnf6RySGNW4zld2qF=82217EF2⟧",
            "curl -u ops@nordvik.no:⟦ATAT"
            + "T3xFfGF0Ky75GH7HoPjZWA5AyfxNj-z_g24nstze9zIwQiZ1rvj_TZo8VbXKU_M8KfjCndYfAtsYxEQwR-lB7yPKc2aP5VInh7"
            + "fUq_7Lp5rrnb9yvukkt_Nj_xqDgug0sldP_rS4_-ksfDo5steO7obc-goJt6-m6IfOh_-Wq0D01xdP8NXX=F865812C⟧ https"
            + "://nordvik.atlassian.net/rest/api/3/myself",
            'jira = JIRA("https://jira.intern", token_auth="⟦m3x0ISI5yInL878EZZjoI+' + 'NlhQ6t9mfXD5HFiY5yiCrq⟧")',
        ),
        innocent=("https://nordvik.atlassian.net/browse/PAY-3312?focusedCommentId=20418",),
    ),
    Credential(
        kind="Airtable token",
        texts=(
            "AIRTABLE_API_KEY=⟦patVenFBxnjXXlNke.7b580570fa3458b7401de0"
            + "ae2e775c2a9514d980d9c78ecb2c78cfc651382350⟧",
            "Airtable.configure({ apiKey: '⟦keyQ1o4k" + "8HkoNKDiP⟧' })",
            'curl "https://api.airtable.com/v0/meta/bases" -H "Authorization: Bearer ⟦patGv6M9MLYGhbkUw.dc2f1a3'
            + "54a7093a37cb075"
            + '38f92703ec9345bafc7f83f9f926147b820f442279⟧"',
        ),
        innocent=("https://airtable.com/appseuG6id6tWe7RU/tblUpqxUQxy8aTGTA/viwy7PcQCurGtCKJH",),
    ),
    Credential(
        kind="Figma token",
        texts=(
            "X-Figma-Token: ⟦figd_" + "xoZCi87tzAm4a1bUhvMfhvFxA7RT35QZZczevjF8⟧",
            '"args": ["-y", "figma-developer-mcp", "--figma-api-key=⟦figd_'
            + 'fGAHtnkkpX_J1N0CERKJBvSDxlQ4L78vEyzYqvIP⟧", "--stdio"]',
            "FIGMA_TOKEN=⟦figd_" + "yibgsRZfO2jh_7Vypf3gab6juPE1Typ5aImC5lLY⟧",
        ),
        innocent=("https://www.figma.com/design/J6mcZhFXj9wfLg3JFXNNe8/Checkout?node-id=118-2204",),
    ),
    Credential(
        kind="Dropbox token",
        texts=(
            'dbx = dropbox.Dropbox("⟦sl.'
            + "BkBcb67Fnq8odXrS5kN85hAfjZ8QcDOds3WSw1ZOiD6t8h4LBeEbA8ZpXl1NegITZc6JrNBdKc3U9bVe8U15USGVmbetQ45zyO"
            + 'ShxJ2g8z3pzwPX9TAaEkjqMlpGyH9vlPuBAO_6⟧")',
            "DROPBOX_APP_SECRET=⟦8wq2w5z" + "0a31wnha⟧",
            "Authorization: Bearer ⟦sl."
            + "u.AF3_aFrk2DVLvqbbHKldeou8dJ8nD_MPes6fyCK1pioTNeI95OGKlzTGA48vEe7h4PM1my9czSN3f99QMXUE5MRw1TFmLzqc"
            + "6lfMvei1VsfOewGYXPEXS2hOnPzfYzEFYIkangicXDx4RUBRwoEmnpHKVOAS-ZyVQ4⟧",
        ),
        innocent=("https://www.dropbox.com/scl/fo/sy5lvnzu5346evov7ae4/h?dl=0",),
    ),
    Credential(
        kind="HubSpot token",
        texts=(
            "HUBSPOT_ACCESS_TOKEN=⟦pat-" + "eu1-84996195-2c14-4d13-9ddb-86c754207e6a⟧",
            'hubspot.Client.create(access_token="⟦pat-' + 'na1-be8d6926-ea4f-40f5-8439-70ba6b53cede⟧")',
            "https://api.hubapi.com/crm/v3/objects/contacts?hapikey=⟦4c615684-b80c-4944" + "-aab4-652e69d8fbc2⟧",
        ),
        innocent=("https://app-eu1.hubspot.com/contacts/26118842/record/0-1/51200345",),
    ),
    Credential(
        kind="Intercom and Zendesk",
        texts=(
            "INTERCOM_ACCESS_TOKEN=⟦dG9rOjYhiADgtm0DOJ1u0lpLUhLon3" + "RRV3BXwt3DyrsQeBfl5SeVnDwpqGO=⟧",
            "curl https://nordvik.zendesk.com/api/v2/users.json -u admin@nordvik.no/token:⟦ppqPLPbW8gWUamCQTVzP"
            + "fVPvOVofv9O41mkeTLiz⟧",
            'zendesk_api_token: "⟦F5snfgXV0DubrQNXX0Lp' + 'KzoCCDiEFkqK3aPaFYhn⟧"',
        ),
        innocent=("https://nordvik.zendesk.com/agent/tickets/448120",),
    ),
    Credential(
        kind="Okta token",
        texts=(
            "Authorization: SSWS ⟦00s483ay3PY32w8a71COH" + "6znKJ94M-Oyla7uVoiv8B⟧",
            "OKTA_API_TOKEN=⟦00c-7Dfj766xkMWADj5pO" + "MSQY6Iv-crV4BesdOCcj2⟧",
            "okta:\n  client:\n    orgUrl: https://nordvik.okta.com\n"
            + "    token: ⟦009MLbGTYIiR2pOCANNhL"
            + "9HmmS_tqLbzhrlVuP92PX⟧",
        ),
        innocent=("okta client id 0oaEFwkMwUfBfAIaAx41 belongs to the SPA",),
    ),
    Credential(
        kind="Auth0 client secret",
        texts=(
            "AUTH0_CLIENT_SECRET=⟦Dwd6W6TeI5kicUyjN0YFQGtjY9a3f-iQ" + "HIwAaUYo2RSuJ3-8XEy5YBgPkVPVw9ev⟧",
            '{"grant_type":"client_credentials","client_id":"txnCqvTlT9ZF1U49Fu6PNHCUx3XumGMO","client_secret":'
            + '"⟦e04ngvElDci5IR2LtAvoYLutYmnYjFjA'
            + 'sgbtWCZj1fH5G7QFry3lxwFrf-ujovvp⟧","audience":"https://api.nordvik.no"}',
            "curl --data 'client_secret=⟦EFRE"
            + "O7L0jh3xTDKActTw8dGVtc6U3yRcJdF4JpA9M7DSBM50Zv5_TgyxnYyEBlsN⟧' --data grant_type=client_credential"
            + "s https://nordvik.eu.auth0.com/oauth/token",
        ),
        innocent=("The client_secret must never be shipped in a single page application.",),
    ),
    Credential(
        kind="Contentful token",
        texts=(
            "CONTENTFUL_MANAGEMENT_TOKEN=⟦CFPAT-" + "0r7wSTOBbw-jrL_kWD0LtjmpUv6A7OJYCBNHuohZ2Dl⟧",
            "createClient({ space: 'k1x9d2m4q7', accessToken: '⟦_tH-WoY3jEVSQa_fhdd1l" + "VOjhtxc3RopVOjLfGh21X9⟧' })",
            "contentful login --management-token ⟦CFPAT-" + "IXspACZ-aqi47GE7ILL6DtIHMd_Dg3839KQ2-hvMrFx⟧",
        ),
        innocent=(
            "https://images.ctfassets.net/k1x9d2m4q7/nFf9dyYpjc9SaD7lMu77Gd/e67e5d0d9b3f164855d75aa86fdf582a/he"
            + "ro.webp",
        ),
    ),
    Credential(
        kind="Twitch token",
        texts=(
            "PASS oauth:⟦c2hc9569yvptdlh" + "yto325ec7u90oz0⟧\n" + "NICK nordvikbot",
            "TWITCH_CLIENT_SECRET=⟦w4n1sq5b73m4pfe" + "moxzq8q7675qhtk⟧",
            '{"access_token":"⟦u4xo11mr14p0vig' + 'jn3o0vne758os9w⟧","expires_in":5011271,"token_type":"bearer"}',
        ),
        innocent=("Client-Id: kimne78kx3ncx6brgo4mv6wki5h1ko",),
    ),
    Credential(
        kind="Spotify client secret",
        texts=(
            "SPOTIPY_CLIENT_SECRET='⟦ac61f129bcd83a27" + "5b5c156158113353⟧'",
            'SpotifyClientCredentials(client_id=CID, client_secret="⟦b4aa42f31ce1fc84' + '356ba3e22801ce69⟧")',
            "spotify:\n  client_id: 6a8bb183ce1faa18192ebf82abb2001f\n"
            + "  client_secret: ⟦8e443f14f1224d17"
            + "83cc09546d3ba03f⟧",
        ),
        innocent=("spotify:track:1pptbXUYYisQLPUegYQ4yK",),
    ),
    Credential(
        kind="Facebook token",
        texts=(
            "https://graph.facebook.com/v22.0/me?access_token=⟦EAAG"
            + "BIG2efGLagB194OM2iMYYw45EPw3VcIrTXkIqasr49hqOycJi1GdqnlvuIKzXobJkQwe4H5RaDZE0x1ANrRAFLmwu1A3QgQG8Y"
            + "9Xo4jDNOvqYGJuGWyjjUKtqT0608h56uW5o6GrLcBTtee5slOeMCCN9iXa43YLLdiKS72gS2BVl48liQBC⟧",
            "FB_APP_SECRET=⟦1b9c8e06d5fef12b" + "9a661afa7568571e⟧",
            'page_access_token = "⟦EAAB'
            + "kDGYGSLVIBLYfm5qYNH1ealhbIba54KRBUE7N73yLJVdmPKMkMXaV1ESMAfAToStgQ0ogVBQEoJamzC2FstgdVSaD5UlLk23qY"
            + 'sZidzZ3hpQZukPWN1Vi8WlpCYaKNHyf3N1OV4q1maeEHy63NuL4hCFTZ0p3gN3ZD⟧"',
        ),
        innocent=("https://www.facebook.com/groups/1184720391848/posts/2203948571023",),
    ),
    Credential(
        kind="LinkedIn secret",
        texts=(
            "LINKEDIN_CLIENT_SECRET=⟦WPL_" + "AP1.nHItPZ9dxLTn7CTz.Hlyisx==⟧",
            "linkedin app: primary client secret ⟦KvbKIE0J" + "xDsDfyGz⟧",
            "&client_id=8687kejtwnafql&client_secret=⟦WPL_"
            + "AP1.Y1svZgaqt99gMYft.514UgG==⟧&grant_type=authorization_code",
        ),
        innocent=("urn:li:activity:7180123398472016384",),
    ),
    Credential(
        kind="X bearer token",
        texts=(
            'curl -H "Authorization: Bearer ⟦AAAA'
            + "AAAAAAAAAAAAAAAAAHRKZdkEuEBKwpEHRcdrEHihfPzpNsP%2Fir8c2iq9Vaga%3DQh8GfuN7WFvveoUqk2SASAMke1zEshkFA"
            + 'YMB6WBsrO⟧" https://api.x.com/2/tweets/20',
            'tweepy.Client(bearer_token="⟦AAAA'
            + "AAAAAAAAAAAAAAAAAlw6gr8SZB1Hq3OU0Hd2H3NbLdMUlCBvMw2aOJNk2%3DcbkkfK3XG7xEcLeEjJoyAg5JYSfGMPhONxWKAO"
            + 'T28BBBFBVz⟧")',
            "TWITTER_ACCESS_TOKEN_SECRET=⟦ac8jzFgcA001DtEMd7QbSO" + "BxGMkZNRO3TNx74AWJFLGAM⟧",
        ),
        innocent=("https://x.com/nordvik/status/1893400128847120384",),
    ),
    Credential(
        kind="JWT",
        texts=(
            "Authorization: Bearer ⟦eyJhbGciOiJIUzI1NiIsInR5cCI6IkpXVCJ9.eyJ"
            + "zdWIiOiIxNzg4OTI0IiwiYXVkIjoibW9iaWxlIiwiaWF0IjoxNzQ5OTk5MjUxLCJleHAiOjE3NTAwMDI4NTF9.29zUV8HlPoAV"
            + "cmHMi5fUhTZFZD4oMaNsNI6ktQYY4rM⟧",
            "localStorage.setItem('session', '⟦eyJhbGciOiJIUzI1NiIsInR5cCI6IkpXVCJ9.eyJ"
            + "zdWIiOiIwNzgxNzg1IiwiYXVkIjoibW9iaWxlIiwiaWF0IjoxNzY3NzIzNzIzLCJleHAiOjE3Njc3MjczMjN9.XCL4xDJSVepV"
            + "gAjUhlFUjHI1WAowBmWMd7u87E6_iYY⟧');",
            "2026-01-30T07:12:45Z WARN auth rejected jwt=⟦eyJhbGciOiJSUzI1NiIsInR5cCI6IkpXVCJ9.eyJ"
            + "zdWIiOiI0NjcyMjk2IiwiYXVkIjoibW9iaWxlIiwiaWF0IjoxNzYwMDE4MjQ5LCJleHAiOjE3NjAwMjE4NDl9.MsL34aP-4GIa"
            + "v9RchoNZpRdFee3ahTjWxOclJap-cg-PdZ_Apb4D03bLbge_gUWT_pZo2Z15CmdOeM-W12tt22_YeC9_DtcAIvJ5Ux0J2xgip2"
            + "FyDsahrR7xRVAi_FOmP5wCmQPp9SRJZvCmz_nfTVYTcG8KxRNO661Gdm_AVuoi8hPH-NZ5cAcGaXBkTB74lhHI88Y7g-qppnNZ"
            + "N_hP3dMYfzaVdFAFVJ6V1MPRQKFTuKEhcsFjpm8H7SxoPDWGrW3qk0cFNQ0UuC2n5fhZTtcoCn7xQNz5LPHMUcWzGyg6XYTXp0"
            + 'yjwTQdrP9S3Swy9T64w4Z5PckheDx80F5JLg⟧ reason="exp"',
        ),
        innocent=('The header of a JWT is {"alg":"HS256","typ":"JWT"}, encoded as base64url.',),
    ),
    Credential(
        kind="JWT in a URL",
        texts=(
            "wss://live.nordvik.no/socket?token=⟦eyJhbGciOiJIUzI1NiIsInR5cCI6IkpXVCJ9.eyJ"
            + "zdWIiOiIwMTMwMjMyIiwiYXVkIjoid2ViIiwiaWF0IjoxNzYyMjk5ODU1LCJleHAiOjE3NjIzMDM0NTV9.M3ejobGUhaHJarLP"
            + "6euD0uqOpqjaKHq098HXQf4vBT4⟧&v=2",
            "https://app.nordvik.no/invite#id_token=⟦eyJhbGciOiJSUzI1NiIsInR5cCI6IkpXVCJ9.eyJ"
            + "zdWIiOiI1NDE1NDY4IiwiYXVkIjoiYXBpIiwiaWF0IjoxNzcwMTU0NDE2LCJleHAiOjE3NzAxNTgwMTZ9.L_Cko0U5l6v07P9r"
            + "u82w6V3SjNSTVz-sbZ27eY0FH6oHufKgvjroh_vlouwMjzyDfi6tp_f2vE5yLIw3lVaLTE0UGajqLDL7jT4fJzCEKfMYUYwW-Q"
            + "o01dpI5tMMU0LGfH5KPZDyoNWtEgPsGLNF261CE4ELwHKXazQpEyiuBCTsv174wbQMgEY3MhkM3v7JZFnql2diC180ukLeWONf"
            + "zRkU3-EXi_1wBQqdNDQDlrBeXwYXeP6hl9Q1uXiJnTpjMIToB_F5q3AnUsH7VkBRqf_KI033ME3mfGTQybRr4GNk-hpmjBcOKV"
            + "DThRa98S16AeoSy_U9UMDFeW46wr-MiA⟧",
            "我点了重置密码的链接 https://id.nordvik.no/reset?t=⟦eyJhbGciOiJIUzI1NiIsInR5cCI6IkpXVCJ9.eyJ"
            + "zdWIiOiIzNDI4Mzc3IiwiYXVkIjoid2ViIiwiaWF0IjoxNzU0MDk5ODY5LCJleHAiOjE3NTQxMDM0Njl9.mTtlNPTyplRmwaNQ"
            + "2VBDwyQgZbGeRWgI8HX5DckiDOI⟧ 但是打不开",
        ),
        innocent=("https://app.nordvik.no/docs?version=2026-02-01&tab=tokens&lang=de",),
    ),
    Credential(
        kind="HTTP Basic header",
        texts=(
            "Authorization: Basic ⟦YWRtaW46QTVkUm" + "tBbm0lQThYRg==⟧",
            'headers={"Authorization": "Basic ⟦c3ZjLXJlcG9ydDpJ' + 'PVltIWNWc2dMYXcz⟧", "Accept": "application/json"}',
            "GET /api/v1/status HTTP/1.1\nHost: printer3.intern\n"
            + "authorization: basic ⟦aGF1c21laXN0ZXI6cm"
            + "5DcEE1eVgjRXc2bQ==⟧",
        ),
        innocent=('WWW-Authenticate: Basic realm="printer3", charset="UTF-8"',),
    ),
    Credential(
        kind="Bearer header",
        texts=(
            "curl -sS https://api.intern/v2/orders -H 'Authorization: Bearer ⟦cBNxZUkbcYBk5Q0hshbs8"
            + "LZRbkCgphN13LToZ6SEm3j⟧'",
            "> authorization: Bearer ⟦52b42b3a2c09cb585e37f4c41cf0da02"
            + "b0a1ead08b98821f5b2bef920a2843c0⟧\n"
            + "> accept: */*",
            "X-Auth-Token: ⟦a5k-WQF_l4RjNoyh9L" + "IMbysrrZc3LW-_55Kt⟧",
        ),
        innocent=("Authorization: Bearer <access token from step 2>",),
    ),
    Credential(
        kind="Cookie session",
        texts=(
            "Cookie: theme=dark; JSESSIONID=⟦E09B4380F9F474A5" + "88A3F4EC720CAD09⟧; lang=de",
            "curl 'https://forum.intern/admin' -b 'PHPSESSID=⟦wam0g83z26tzr" + "36be67mr8wwe6⟧'",
            "Set-Cookie: sessionid=⟦q474wkmhlsixadap" + "9u5fegtk048fsszt⟧; HttpOnly; Path=/; SameSite=Lax; Secure",
        ),
        innocent=("Set-Cookie: theme=dark; Max-Age=31536000; Path=/; SameSite=Lax",),
    ),
    Credential(
        kind="Cookie connect.sid and remember token",
        texts=(
            "connect.sid=⟦s%3Am3uUvIiS85lPAP3DhKLKgPSRHrymcq6B.A5J" + "U2yutY8Xe4fwct2PcehvOXhujza10aT3gGTP6%2Bkt⟧",
            'document.cookie = "remember_token=⟦03e36ib6Jz46R2QmofgG' + 'I2EEI3EWSMF31ALYeSS1⟧; path=/"',
            'requests.get(url, cookies={"li_at": "⟦AQED'
            + "u2ccuiQoKs_Qvperh10N_1EJ4VRTPh5Auq_h74aTkmTD869ahs2T_TgB0QODWgQn49DIka4mfHHuBFBPiu6BbbJ4_CncRSxcNa"
            + 'OnQxJ8QXqIHjQq1kNgFUlzFrNebF9nxHL9R6PiVz4DegjbZFiN⟧"})',
        ),
        innocent=('requests.get(url, cookies={"consent": "necessary", "tz": "Europe/Oslo"})',),
    ),
    Credential(
        kind="PEM RSA private key",
        texts=(
            "-----BEGIN RSA PRIVATE KEY-----\n⟦MIIE"
            + "pAIBAAKCAQEADT3A/bD0JOmRRtUcVw70IdqUpn/Z4vPoHun0ExUBzV8zRFzS\n"
            + "FcGfFyo5j1JUq6bP7d8mUZay9cpSfPKo9Qz58C8yaZmEEuMqcWvaMWhgRyCYQPpJ\n"
            + "xaHeTucJ5EGODCwdYCbAMKbFrFjZa2JfMT+1QitQjgF64+gPUxuenlUlFvKGCBTv\n"
            + "E4vFBqVOQgP7X1+yijV+1X8r/LcDNiK0L+/7+VP2fjYKZjhZe6JCVJzKQpjwR7a+\n"
            + "5QMjhHji+gSTvHJRyMNCUfRUMo59WEIjXWEstQ/r6ewMmpLWZO5d+6xroHi7EQ29\n"
            + "pDSQ6hG0IrfSpXNGNr5UL1M40ruQjmrVgha5AlAhnH4Nx+udaDZp8PboCp+F0s3E\n"
            + "ktYbsznrbF/nXFbwIq4qVwrz+V9zfZBlAPXdypAomUWfloKCQEQWavvSR8mP3R8u\n"
            + "ofuYzjaocswBr2y5iTHlSlwD4Y+pfZRMT3lTWu/snwjRVMVtq2r/jOIX6Up6SPjj\n"
            + "XtSPQSsP+hSv+VkrbI1SmewpsGnjlq2sMdwnP9vOtK/BVN6SaJOvbyxv2wpL0GHb\n"
            + "oQgM3LTQpz8k8ZkbfSXi09m+weTg0Izq65kwOkzFjCfMIZ7xmXg2WZ4plLnn+CoK\n"
            + "VsfORnw7AcCx813XKL0gD1VVqz6kVTDkxpq2oOsCxOA8AzToor/DYQ+DOhDBYepQ\n"
            + "NbpYZfBRRVyKHp3oAyW0oeO71/qz7elaSb+dvWa0rL3BFbS7rZ0mLWaapVxjYkwH\n"
            + "wkbLChkrgHn1eNVVU2gqEI4uET7VmAgqAHFuEc6HXFNLLzcx/Sa3Lx5bUK8aoLUG\n"
            + "PBWkgH98KF2bG0xVu678z173KbEF7fXkA4MT6t1l9Jm9nYEFqN0/RIHwL41aKRLP\n"
            + "CzNUrLRxvOq6fJ3DtBUUkdwCQ0fD62FcReEcWGpRYy4Jhh6NFHwPsD7menUrnLjz\n"
            + "ShTfhurn6fpjPf0YHXJl3ei1bfj+pBxnTSlchW+plX1EA8RJnCjsN6FLyI7jHwnJ\n"
            + "uS0kX53b5+vxxB3LoxIxZmKA+tMesDiTMdRVea9nUsJ6cLsoe1FpHZoaN2etxsFL\n"
            + "UWgQbGA1JH51o8HZ1TQpFToY2+cwk1NS1m7kQb9pyH3guDZgM9fgXH2StDqH6Ye9\n"
            + "xQHa2FXez3SpP2/JZSgaWQFz1Pu40Od1kbz2OA61+ln4lDslNjlNmPP3sAQ/nzuK\n"
            + "rOLX1Tbq5ayfxZzm5dxhDkOWd0hQEw7QnFIN3AplLzjIPlDjibJx1lFLIvIgFz7W\n"
            + "+O048Lvh1Eg5B2HsJ1f3jyoMarriLBWO0k/u9b0vFHZXmyehoivCtTGPMBym2aZ2\n"
            + "jUX/Tfz/Sm6yMpFF7QtjwFs7Pjv7bvmKBp8wpYbmH4/9FFdp5PPO6WuJcmcfKjPv\n"
            + "juMsQZBUEZTURWSR2XvWNXaYgCaBIR4E8Wmp+o93auuZwgX4DiysLLleCUEXHiQX\n"
            + "+le3DNYBXwxGCWc5Gk6jgp2u0MbXy92vS3rTDvgNbQcI2FtyHZsuryEe3jYLKCtd\n"
            + "KRlKF4TYd9mLTb8q0Q4Cf2Z8fS0Ldj2fz9qvb70FL2gjCXkw3oSRvI==⟧\n"
            + "-----END RSA PRIVATE KEY-----",
            "tls.key: |\n  -----BEGIN PRIVATE KEY-----\n"
            + "  ⟦MIIE"
            + "vQIBADANBgkqhkiG9w0BAQEFAASCBKcwggSjAgEAAoIBAQCsrYiLzOiGpV8U\n"
            + "  SdVb2IaxE/fX7hXWBtEYyyRGyBuQpGa4SAQnQMVB+2ZebabnF3wD/QYONquAJFwZ\n"
            + "  iJHKTP3W4r35Xs42SzEgDSF2URCLhsHzORaNm7AOTHbpXy3LXLH23VLey2Z4DaLP\n"
            + "  cnKc0+n1KB66vr1ayGg9pfsLJN1Zfm5+nkadnlFCfzcm69TtZHiAviGpzfsmBOB/\n"
            + "  X3QMCfnalOfewpOsnb8YyIMyZ+Yd7iIAhuP32Bj2eYOH/XcG8kJn6LGj7Y6+cMpO\n"
            + "  I+359izIt96YSO21+ZA7PuQDVIHOfre8h+Rj+8GvQCvv+ckJ4IgIxVnSAeIYCPow\n"
            + "  dj1E8C+K2qnH2vkWhawskGmG/Ua2Z44tr4qilI1lb7hhvh97J7L4oSCj5CfnesIj\n"
            + "  zzwuQjqm0FY08fQwlEXKsLwCMSqbO3734mCJC0UuRlpjrAban/NB9NeOEbsjn3PS\n"
            + "  KxpSpfzkX+3fZ7TzlPsM4WI6fu/7Bi27T5UPZEYc1a6No07GLdvAB5fuqJxZsEfx\n"
            + "  N6GqZaC7zk6L3Gl6mxgdqNjERWNRlNARrlql/EPLbCuDcvnib1t0P/rwPeAea2Y6\n"
            + "  ZQUYItVX5W+G/+pIXFeFWt86HXj8AbrjflXJcBX1sVCsUQ8kqN3tnzT8PgSPD0PU\n"
            + "  4wuHhM3jsDow6FhaDIVFFgZ1wTQQekowJf7Ed+LInTToRWi9k+LdxwebedTD7/CE\n"
            + "  Up6LvVrxXGgStsyEuolvyGJijLk5vRio6grFBCOZRVBJQ0ONtFe4rdzT8vXLbNwy\n"
            + "  1zSNSsQnrFUjo0jzdiaSAFKImVj50HeG/VBWRT9R+M5r8t6At1t53+7P1mMdVjRs\n"
            + "  Qgn3RGcd073UOcwECho2osh6U9cw/TakBI5umLur95heWPdsd0VxGFNGCS5UGXEs\n"
            + "  qcXZCqPSkNB8LBkgpHxel6YYbuFzFILJIKe/29v4T8uobbkmhHP2BJ4aQ105fHyy\n"
            + "  /ZZh6XeyAWhdAWRJtj6Ar66S9uaFoVqzELMpncOF3XaWiWzJdIqLLwTjHNvWkWpD\n"
            + "  6FQAydY3PDGJ5csyKUiwC6yqf0XSeHin+QJW27cIuu30JEcMcOV5YgKtp+DMi9/v\n"
            + "  hKgBr3h95c5gJvY8hJb2MAv5d4Om9wRJq3H6Mp2Rt1uRyF5kbuY8q70S0O2qm/Y4\n"
            + "  634pQLFAyW7vTj4170JtOKdeYqEwoWlJUC4jzab17licDaCla9132UF2FZa976S0\n"
            + "  E01HvLtF2M1i91z2yEodrTUmU0Hp0BVGsWLzf1X5XbN2karwUQeHas52BAO6E0lw\n"
            + "  Jiqlt2VvkVOCYCIzWaK8MMkAUvcr9bfKoEI11YM9ZQO3vSVyXlG7Iml1xb2iK70e\n"
            + "  99zwYnyflkheKuYHoXDxUCscVt0oSAmekGzUyQytHiEs2SowTWu56N+vYjfm+ROD\n"
            + "  rfQq2miymVGt+84XGV+ajaEPpD0qVm9V6yPP2jvPLgPnartsTmXB+2OYabFJWG0L\n"
            + "  1r2Ov9HaTdPW46dhe+axdbPPwiXhR9Gs8DiG7J6PyvcUA7Zey+8G7c0nXNzCI72r\n"
            + "  tjfQTHQfJif+DNu4hE9d8pFM⟧\n"
            + "  -----END PRIVATE KEY-----",
            "private_key = <<EOT\n-----BEGIN RSA PRIVATE KEY-----\n"
            + "⟦MIIE"
            + "pAIBAAKCAQEAI7uQbB76rM2+aoVyUBPLjd6S26FBq/tWF3A4bHb4ARWcdoG/\n"
            + "6azm6Q3YF2e7pCmd6cSozrXU/Hgi0ZmVTFdTzm+JvI2gC1ENhWRjMpyM/Gs161PV\n"
            + "T7kbwqCu6Jn8Fh4vWiYvaYUdrtbHN0rGIza1CkxLMnHg3Ch2yaodPfSPEFbDm99t\n"
            + "yVITSsUcmaFPd34PuxQHFTsaLLnDhJHq2odMcoMotC6DoXaj9iR5BO0nHx24Pg+8\n"
            + "9wTumrb3FmvdE8I8W18QyVOsvZVRJGxd4Pt5d9S5p2FArqueXU0VEXGD5cU57opx\n"
            + "VD4V5myQM4Gr122u0YktyuWxGC3a3ziXjAy2iWy2Ac1nQ5nVaM906UCaEB9BkkZu\n"
            + "mYmLveAwSxAwVCrt3yukW2PmATQmTkpqHvrmb3gp9pzAwaTa7YtL6GUEanCT4VPq\n"
            + "iApnisIUfK5s8QURMeIxvHfjqhcEJwVSpvwlmNjUx2Aab1KYlVBA40LcuVyrBRGa\n"
            + "80GByaIzyW9pMrSGZ5dwF3dXFwMu2SNdZYPDTQTrCiNwi7UJb0e63JuCB+QCGVCT\n"
            + "iwEqBKh4Ydjka2XsW5tjFMViSVI0CMCGO/beRtlaiPtmX3uzPLjvTiA9NVHucp98\n"
            + "F1wgfLA3k02oXfI7kMtRO6LRgwg/7fUePPoA8VSpSQ/uFZcYpUFlTpvikuqs7liB\n"
            + "a+X5Xn/nZy+HrF1Ov09Ro3otYKh5j1zI0FxUHIjo2uiw956z43FrmDxTteIb3Kxx\n"
            + "jrStH9cZyTgOroQrvzrdNFGwoy1C26LCsDBzGh1rjWE0MujE9ESrUlnFV/MjHlD0\n"
            + "eSPdmSYUM4QIOPchPchlTZkHbEuTEkdCy9lVTGv3o9zcWPQMFGfFmYHPtriZwkVF\n"
            + "rBlXfxxK0d9EWTxWOfmSlkVmmYRCgxs6pQYGl/t8QdeNVsOuq2iBJpWvmg5Pd/V8\n"
            + "vlglnBjMC8ZSgJp1hj9Zp8wQIshlICmDoGFhHMZze7gWVYKszGsZTUe0znds+g4p\n"
            + "hKA4bX/ytZYGgMuJH1mwSSW9I/8IeeC1y2PAcAgLpAgFyewenkJuRtkkVmv0X+o8\n"
            + "Rpr0L7eLkRDFZpKx+nVeEePpSWeYrLmR3rwAqKKroW8HhCXjv2ZQgubHsd3hwsg9\n"
            + "5+sBp4QuG32yW1qvjHH99Iook03J3AccbNSGwyejiLi7G9euynBVeNcY77+WaYJH\n"
            + "GhfW/lYExNbqWF631Xdo7Sql4WgKFlRzm0FfBl1O8jd/fxi+1rdI8hX2dX4lMWny\n"
            + "9y9I6/Rit9LRetvKSWxP5xKSflovdm4VrmKPJVXr2kCMrqyg3vSsozuK46+PGmyI\n"
            + "Q1I7TSVLV+JZbI6G/GwuxJxYwfZAZiE+5KaiTGWzuUGKA7F0G2l3GW3/ZVbSUNgu\n"
            + "rTRNQLTJYYsg/Kd2QOo2u8YE2vtKs6JeRPEWp+l1RsUxha9gsyAVFncCFFrd32D+\n"
            + "/QzizgjRhGYAVoasFH7G0BsDpghE9YDvwIsrVwTK4yYYpSRNY22LdfilxelLKd28\n"
            + "ILt4des5Fp+7v/zIqE7m2ztdqd+nRj1mbpwDGp0TYjqbIXVooFUEUg==⟧\n"
            + "-----END RSA PRIVATE KEY-----\n"
            + "EOT",
        ),
        innocent=(
            "-----BEGIN CERTIFICATE-----\nMIIDazCCAlOgAwIBAgIU2+vgsinOEPFHUz94oKXMf33iGYwZ1rwzQMCFIfbK2xvx\n"
            + "WSAViC3qHnEiFEaaCYm+Ay+EOxQVDa6wzHdJpTBkubo9gv8xCx1KOawT/+XUKQ68\n"
            + "4bvTlGLlpPvq/qdIO/XNxlB3UK+bUT/WD/rNrsjpj4o5j2/jWtC3sDT1E0KF11dO\n"
            + "/aRrxXFu9jW4RRWfwlfhV8sznt4UkBD8HjeEwe7dsttHJkYUATbjM0GpcXTBvVIN\n"
            + "bQkhtIIvxumV+tcMoVnQivu95Iu/yk76traHEWr+j7ypJK6REAhHlZQxSUREvMU9\n"
            + "yXdwAGFUGBzDrchrkedlvYVydM6GxWzGCBcsOxWWJMUuowepgUhDM0B8Xd+tr0WA\n"
            + "Q0cb/BiXAfO0a28BkrTU/slg7H00Y0UXmYb7NkCHYyX34taSZEbm6/ZoGUT0ls7I\n"
            + "M70SHXzTC8ftFpDWyrxxZMRh6sB8Zeu1K0Q8I0onm9Obkl0baX5z0FxTF4Y6WDVf\n"
            + "QYt6T1rn/KNQP9tO20YZKOPPz5gZZzai7LV5vNeA4USO3hvHLXMaX4nKHIsLcOxj\n"
            + "XVOngzpp1tEcYbpOyCudVj2R4xPb/r41VVkNIGXnpxEefOYlGBJlMLCuZ7NPtCuA\n"
            + "l5tO84LW7NIb+YLQv0LFlwS1Jv1Nl/Bplen6LPV9jD4JYTorowgOmwGWrZB3KTAA\n"
            + "0PKc9WdxVQsmjq3glx/I0vsLKn5+BeYpdzIuHZBMBWxcVF8FVcg0nPywuTAoKsJK\n"
            + "HNSQdTNXOQkyKlGN+KAGWcLmr96/K7C5IftyLlbctV5IsAQMH2JTbtKLg0Bf7iks\n"
            + "+qWBk0LBiT5ol/QWNUgP/laQkppjRyAbIggNxhvUEz7fGyBFv9EWR+tLO47myUd6\n"
            + "s1Z6MitjZhDqCjeSIwX3eSdKqzIBBPB6rCPlD2p47OXKNadIDHV3EtiZ7MFe9yDI\n"
            + "t+oFHjAP6V//O5ta1W2NnuclGOz31TQZ4VsUpb2D592gcLesVisdh+mEr0XAO3WQ\n"
            + "5LXGmgnRfPrnztZ/GULBzFFj3CWPBZof4PIDaLRnqLcc2q4IVJffdy3OXDk2sSTo\n"
            + "DTX6NaDOkerzcfd6Jw3nhnsXkVWpgc0E8bODYfBeqp8SqRo3+aOM9lR1fnxrL8TG\n"
            + "wjPLVUE8uaZCThi8DRKTprrrIQ==\n"
            + "-----END CERTIFICATE-----",
            "-----BEGIN PUBLIC KEY-----\nMIIBIjANBgkqhkiG9w0BAQEFAAOCAQ8AMIIBCgKCAQEA+ULy+y26NeeWagXsXZkc\n"
            + "kO2GJaIDcUKwS+KC+dgJvgT+sL6kTw0vwqY3iKX6r/eRvNzi77Fv5lRzdmzHtPhL\n"
            + "3Ej/cfyxJPtvqln3dIoY6DtutG6cZupRdf/p2Yk5jI2fzxCyOqB/g5X+yZBWXJaw\n"
            + "6F4i+Z3NCcatBH3cUCLWvqaszXyVKXjXMx/4u3JbNHrJePXdsitQvvrfeHd+GvSB\n"
            + "RvseunQXueFFUt+4RxpcVn+cfPJ9U/c2V1Rr4MddhPSKWh6cgxTpjNrhNBcm9hS6\n"
            + "cn+9TIIKZKTSZZ1OKAEWedekl/PvG659xYstn9x6q+RyZ+kM+KmY8XgI4jhvJ8yj\n"
            + "cih+2O2q\n"
            + "-----END PUBLIC KEY-----",
        ),
    ),
    Credential(
        kind="PEM EC private key",
        texts=(
            "-----BEGIN EC PRIVATE KEY-----\n⟦MHcCAQEEIqP1pTmgynALWD5uOjLf8gaEGZ9s0Rsl"
            + "g66uH9EuIFIPlM7orT/QjkM0\n"
            + "WWfPe0LNoK/Ggmfe/ofL9+Azl9/JJW5MBzMTUW3SAI7LuI3RYd2YkkhhZHLQJ6hW\n"
            + "JXuFK8TFAQnzDacmMoBHVUXzB3QK8iJVSI==⟧\n"
            + "-----END EC PRIVATE KEY-----",
            'JWT_SIGNING_KEY="-----BEGIN EC PRIVATE KEY-----\\n⟦MHcCAQEEIVUGhvpHmr501BV/YECfaW1/qFlHfDRl'
            + "gdOvDsoA8C8Mn8Q94Owj8eWT\\nm1Db9LIzx0yupVSecEriQV2zjW9tFpyZ74pnBvpUXdub/2HmRCjOHlBDJ/88mIIa\\nmuim"
            + 'epQJY6JRTT7LGmwUhunvityr8hpWsF==⟧\\n-----END EC PRIVATE KEY-----"',
            "Apple hat mir diese .p8-Datei gegeben:\n-----BEGIN PRIVATE KEY-----\n"
            + "⟦MIGT"
            + "AgEAMBMGByqGSM49AgEGCCqGSM49AwEHBHkwdwIBAQQgfCGVr8ahGIefIfRT\n"
            + "280VxHA1pWqEQls/5tk4P4gFcX6jKuQAuPY4/Y/8xAWlTvMFeGXAE+Eia6aesMrX\n"
            + "uaOh8muarCAkQ4ZXtWo0+vk3ucqIWQ7QYsicT03OslkrjJ9c1tU0BV7UrDKN15jY\n"
            + "iR3dTIkG⟧\n"
            + "-----END PRIVATE KEY-----",
        ),
        innocent=("openssl ec -in ec.pem -pubout -out ec.pub.pem",),
    ),
    Credential(
        kind="OpenSSH private key",
        texts=(
            "-----BEGIN OPENSSH PRIVATE KEY-----\n⟦b3BlbnNzaC1rZXktdjEAAAAABG5vbmUAAAAEbm9u"
            + "ZQAAAAAAAAABAAAAMwAAAAtzc2gtZW\n"
            + "QyNTUxOQAAACAXgdtB9llAv0ngBKYsOk5Ih4AyjrE5nRKevvvvCb9n8M+qYSAoLimF6/Rc\n"
            + "A4VUjpwy7NEaEddqBco+w/3cvfTYyLSVtbajGKuulbPAti541V2SMpF06VgmS/DEMk7Z7k\n"
            + "YGOvvFGZ5b2XTYWSaTR7PrA/Ic2ISnqZTfdm2RPS/xRCqA2rMG95vEa7/xd2GORm2Uags7\n"
            + "+6rAs5mi3y8MxiAh54AUqP8htqY3/vx8HAo586Oa1P8DDdkAoAbiXmrvBeH+h6De/6P=⟧\n"
            + "-----END OPENSSH PRIVATE KEY-----",
            "cat > ~/.ssh/deploy <<'KEY'\n-----BEGIN OPENSSH PRIVATE KEY-----\n"
            + "⟦b3BlbnNzaC1rZXktdjEAAAAABG5vbmUAAAAEbm9u"
            + "ZQAAAAAAAAABAAAAMwAAAAtzc2gtZW\n"
            + "QyNTUxOQAAACAMS+EHsgEujZVyFRN9neUywt4jo/Ub7NqFFqS5SIlfqfz0F6mg94OtPyIL\n"
            + "lXhnzFzvlv4ox8yr7yLy1XRBnHjrwJD1Y+4SLC3xdR0b5fdgDQpuaIXvbdctii47nMLYSN\n"
            + "sXWcFx9nodfvgk/lkZKMy1U5wVfm8xY+lubleA7ci9E6m9USRLF2G9ZtdLMS4Adrtkr5tA\n"
            + "Qca9srTkjmepNBRf5iL3AIwCODDcUBB7OC2zwvv3IzGU9iNOweZMc15kEyM++wcorQJ=⟧\n"
            + "-----END OPENSSH PRIVATE KEY-----\n"
            + "KEY",
            "SSH_PRIVATE_KEY: |\n    -----BEGIN OPENSSH PRIVATE KEY-----\n"
            + "    ⟦b3BlbnNzaC1rZXktdjEAAAAABG5vbmUAAAAEbm9u"
            + "ZQAAAAAAAAABAAAAMwAAAAtzc2gtZW\n"
            + "    QyNTUxOQAAACApRQxvxhEetZogiOoEiEWuIvzDdmjX+p5ImUuHSQIfxJjw0uWpRDq2cPK4\n"
            + "    9kqzmCZnkTLqJwq6oL9Nux4CeTlJUB7JwGyJJ17+k/QOFDqDux2oLK3uzshUz3YW41LcLG\n"
            + "    DhmD5g+euPqQ9OENJIRtBnTPFGIMONpM5+nFSWbaCWKOjSleAhfIx2nHyFGmPk9RSvjnt8\n"
            + "    CMqjlRcQu3RT3lrQ55ghqSXrgzMWOFWNRfRYXwET0sWCvnA628ZpzvtHkzGDcEkwD1I=⟧\n"
            + "    -----END OPENSSH PRIVATE KEY-----",
        ),
        innocent=("ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAI8wU/1CpWCPxnTZXrlDVLWlX0OP+jgQZIAVRwET7kJc2 deploy-key-2026",),
    ),
    Credential(
        kind="PGP private key",
        texts=(
            "-----BEGIN PGP PRIVATE KEY BLOCK-----\n\n⟦lFgEZecg/GzQzA4atIc36BzxMXVkHQtXU69mWNgT"
            + "7GrBa5mShiMsSuTfCTjdaTPs\n"
            + "XuF9eAUqjVTWnK834yTKQS2/dnhzlu0MW7uYO0pzzFxKm5kV4Z2aANHLApBylH3u\n"
            + "5DQ9O1zOVGXVcER8p0Cms1XNCblhnrvVZmGQ1JEet/xbArGijc+OUrmoMGU6Y4lQ\n"
            + "mNmUcO+yRjVHtf6wZgdaEUOYfzWi/lrRqxRcUnKIlkSVh7hVUbUtqWnJagMtpb0T\n"
            + "6P4QxzY7KBfb3VsDoYO5Za1mr3NosJSVBYdrhziJAZy5hjWk2ae6sQdDRveaqG0A\n"
            + "17eZqRh4RiIQHc4Afny9FO1CjW4cvihFcwQHbcwjKHfycFSyb4/vg+FYqgxNzj3x\n"
            + "xrU5bVjeM8HbYeng+m/nHH14o7gZLHD70d2wpOv3iHjUikPjGhUeN5cLx510pXwN\n"
            + "L27f20BxUG7A099K+6gJRvxp/H07nHze29zjsyxoQc4t5aKLi3BuuYv2ur/lM1cm\n"
            + "PZxEcuURc7fYKGPI4vk71qMb1X7sJPJCr0ZczgbO5xEfQiiRSuKdDF1C5Nfq5xYM\n"
            + "gyy4Rv6YnPk/1fxvx8OgxxBp5n83rVAPf2Nm/esRRcAX\n"
            + "=et3S⟧\n"
            + "-----END PGP PRIVATE KEY BLOCK-----",
            "gpg --import <<EOF2\n-----BEGIN PGP PRIVATE KEY BLOCK-----\n"
            + "Version: GnuPG v2\n"
            + "\n"
            + "⟦lFgEZ0shODUVvmZiBOPbYf03czulb1Q9wseSyNA3"
            + "46rnMnmLsXseJBOCMRQVKOMO\n"
            + "TjgLoVQF588m+cZhU3QwH0CE8celJJ6wcxYMGKRkvgceCKuvEUKDK0jhAH7uj8Lk\n"
            + "ps3O1e0RC62u5RmqrSwDt8/UtQJ359H6mbf/bsezGGsf1Z9zY0uoWBG8Mw+RFGg7\n"
            + "NO63Dlp1npPej7eYQderElFHC6k6vJJiAK69x7+Zh0evGiSkXxr8BwWODuVjSr8c\n"
            + "LkTd5kwgi/AMPAWPy3XkUeCsIHcsCSxVbDdYcBQDs+HRA3s3SyOV7DAKEQCXDAq0\n"
            + "oz7yH5pprq8/GWgz6onFP/1fS10zYaVtPh8/f0xUBw83aVBk/TzzEDbgIdtvzmUA\n"
            + "jC+pFLfyJ0StSkONCooTKlTPIl3MBWzrq/qldETrdzgGoJWKYjzMPnOel84mcgEd\n"
            + "u2H3b3c3Yr9fF/oLVhIRgwlj8eMH04i3Eb9Fuyh51y643DkAaDZYOSFvSQEX0T1T\n"
            + "D8dTUuA4H40wp0s49/9wFhxq1uegXg36VjhmL1h5V/Y4i0kSETVXs2iKnjlV0kJP\n"
            + "dA0qPnsuYszy3LYqLHwkVdclobK/Gu8KvU95F+6bXWEz\n"
            + "=qYa/⟧\n"
            + "-----END PGP PRIVATE KEY BLOCK-----\n"
            + "EOF2",
            "export GPG_SIGNING_KEY='-----BEGIN PGP PRIVATE KEY BLOCK-----\\n\\n⟦lFgEZ0blNFlVkCH3nRuenrw3CMTU+9"
            + "CvjgwcjUs1"
            + "Dr/Z5HX2CN2GEOt2ABzIr+bC\\nSXcUfY/Q79i3cMTUO7YqTSCFQW7daQ5YaVhzngpyyaNdn6ZKolWb6ubUIj2/4adY\\nV/6i"
            + "G8xSHxSza18JvZJ1YlL2T8WIykNLoFnecVAhT5vTn4SsHm4vj3aSJgZcDqMN\\nbdctlQrTBCiIMCMfI+ZPOkEccsRmOKwzftq"
            + "A6sDNRjeiVLkswtuA6yAbQMFCUaXz\\n0C3MHa0bfU/kSniQ+HNc1lu8BAJdsMxiG1UVoP9R0q2+RpoJBo7s6mWBcvH7cC6b\\"
            + "nPkSzwSBjOmaU1+MtrYFCJQcIMwfsdUgPqACDq4z6myQx/iddu5HZersROiVHhSrX\\nBcrKPwd08ag9ll12e7kPWiVQ9Digm7"
            + "MTnbcsMePRGXHjCpN4CZhmCROF4hiULRgZ\\nB5OT/9oex/XfsaSOJsQf7BSPYL2Z3iXaZJCQUfbZ8oajVU4Lfs8WuNxAuTEpj"
            + "uIQ\\nDjf6Ta/nPKeD4gZSnjtvAxlNFdZvg3Y5ZAAwBN9dtJon9eIz13bLVk0rpDQNfiXm\\nGV5/XTeVymlneeKPvIv4mYIno"
            + "jE98dGigkC2Dd5HG1HL\\n=55di⟧\\n-----END PGP PRIVATE KEY BLOCK-----'",
        ),
        innocent=(
            "gpg: key 0x8F31C09A7B22E4D1: public key imported, fingerprint FF196FAAB9AB455ABB00A724F0DD3BE795A4"
            + "C37D",
        ),
    ),
    Credential(
        kind="age secret key",
        texts=(
            "# created: 2026-02-11T10:02:19+01:00\n# public key: age1zl92yzhrcv4h6kq8kj4k76slk3yngl257m7qv96cng"
            + "523q6p6ad58cdkgw\n"
            + "⟦AGE-"
            + "SECRET-KEY-1VZT0L9US8NFF3M9R3A0N3DGCA48SC6FHCZHS9CJKZMNEGGRZ3XAZ2AYQW8⟧",
            "SOPS_AGE_KEY=⟦AGE-" + "SECRET-KEY-1NPKZA4MP98HTP8F09M33MKZTQLZGKD9DSVRXVL2EZ8A00ENPMY9ZSD0FDG⟧",
            "decrypt it with ⟦AGE-" + "SECRET-KEY-1RGKDLL44CC4WXKKM8ZLKKKAPXHWLEQC2WDF8ZXP4NS83ELY4QRL44AD44S⟧ please",
        ),
        innocent=("age -r age1j3tfzvafm8sl7ec5838y3c060utwqzhxd6nnpygfjmppmu4xhs4hpr4grf -o dump.age dump.sql",),
    ),
    Credential(
        kind="SSH password in a command",
        texts=(
            "sshpass -p '⟦F8I6dq" + "us%NcT⟧' ssh root@192.168.40.11 uptime",
            "SSHPASS=⟦6nX9NM2" + "itP6gvz⟧ sshpass -e rsync -a ./site web@web3.intern:/var/www",
            "plink -ssh admin@sw-core-1 -pw ⟦Zinnobe" + 'r.49-tal⟧ "show version"',
        ),
        innocent=("sshpass -f ~/.vault/web3 ssh root@web3.intern uptime",),
    ),
    Credential(
        kind="netrc",
        texts=(
            "machine ftp.nordvik.no login upload password ⟦ZAMmQEA" + "KdFyYSl⟧",
            "machine git.intern\n  login mwinkler\n  password ⟦PUvRQ8AY" + "xsYcGu*g⟧",
            "default login anonymous2 password ⟦kran7h" + "aus_ost⟧",
        ),
        innocent=("chmod 600 ~/.netrc && curl --netrc https://git.intern/api/version",),
    ),
    Credential(
        kind="pgpass",
        texts=(
            "pg-primary.intern:5432:shop:shop_rw:⟦SwUr5xagl" + "ZRkunWNWC⟧",
            "cat ~/.pgpass\n10.4.0.9:5432:*:report:⟦W7gd+xW" + "el%NvJ0⟧",
            "echo 'localhost:5433:billing:admin:⟦birke%" + "tanne5⟧' >> ~/.pgpass && chmod 0600 ~/.pgpass",
        ),
        innocent=("# hostname:port:database:username:password",),
    ),
    Credential(
        kind="htpasswd",
        texts=(
            "admin:⟦$apr1$hT2ToYg2$dwV" + "Zi0yiSVUzYnymW8Sz4r⟧",
            "hausmeister:⟦$2y$10$O3bsy2H1YXKMb9TrzZ58bPm" + "vpZ7PyJuq4aF15Lil9mkqByt9UfvnN⟧",
            "htpasswd -b /etc/nginx/.htpasswd kunde ⟦Moorhu" + "hn_2281⟧",
        ),
        innocent=("htpasswd -c /etc/nginx/.htpasswd kunde",),
    ),
    Credential(
        kind="Shadow hash",
        texts=(
            "root:⟦$6$1YQfW8kvwSELHbRt$BTclPpDIfUfLrkYAIpPI"
            + "n721tmqTnsvu5EkkAeRzD8WWh4LVWl1TGWxdBb0agsiOukFjQ0WGZI0hKFbnX4LaTA⟧:20118:0:99999:7:::",
            'password_hash: "⟦$y$j9T$fRkVcDyFd2vUDrtdJ94obG$ZiqZ7c' + 'whpqLQb3D9g7R4P8j7XvgvN3JkcPiFm5ZPy5a⟧"',
            "d-i passwd/user-password-crypted password ⟦$6$rounds=4096$psgzEfl6U9MIxtYn$Pb4c9Fyq"
            + "mk6xPVONLjr64LyzVQjaRy30uNT83wVSulnq30grgsgft9Ega3pTvUJJaIMPW5QaAkcfod2c1otFKa⟧",
        ),
        innocent=("sshd:*:20118:0:99999:7:::",),
    ),
    Credential(
        kind="Wi-Fi password",
        texts=(
            'WLAN im Büro heißt "Nordvik-Gast", Passwort ist ⟦Kaffeep' + "ause4711⟧",
            'network={\n  ssid="Nordvik-Intern"\n  psk="⟦OaYFziYrfD' + '1jQV3v83lZ⟧"\n' + "}",
            "WIFI:T:WPA;S:Ferienhaus Lund;P:⟦strandkor" + "b-19-gelb⟧;;",
        ),
        innocent=("Does the guest Wi-Fi need a password or is it an open network?",),
    ),
    Credential(
        kind="Wi-Fi password in tools",
        texts=(
            'nmcli dev wifi connect "Halle3" password "⟦EIKZ' + 'SySi1jkqDHKX⟧"',
            "会议室的 WiFi 密码是 ⟦huiyi88" + "66@2026⟧，连不上找我",
            'wifi:\n  ssid: !secret wifi_ssid\n  password: "⟦Brombeer' + 'e+Quark7⟧"',
        ),
        innocent=("wifi:\n  ssid: !secret wifi_ssid\n  password: !secret wifi_password",),
    ),
    Credential(
        kind="password told in English, plain",
        texts=(
            "the admin password is ⟦Tr0ub-" + "river9⟧, don't share it outside the team",
            "log in as root with ⟦marble." + "Goose41⟧ and restart the service",
            "I changed my password to ⟦Winterg" + "reen#307⟧ this morning",
        ),
        innocent=(
            "I changed my password this morning and now the sync is broken.",
            "password: must have 12 characters",
        ),
    ),
    Credential(
        kind="password told in English, casual",
        texts=(
            "pw for the staging box: ⟦quokka-" + "lamp-52⟧",
            "you can sign in with demo@nordvik.no / ⟦Fjord!2" + "026demo⟧",
            'user is "backup" and the pass is ⟦n7Vq2-m' + "istletoe⟧ if you need it",
        ),
        innocent=("The password field is empty after the autofill, is that a known bug?",),
    ),
    Credential(
        kind="password told in English, indirect",
        texts=(
            "Try ⟦Blue-" + "Anvil_88⟧ as the passphrase for the key, that is what I set last year.",
            "My login for the router: admin, then ⟦hK93mvqz⟧",
            "When it asks for the sudo password, type ⟦copperK" + "ettle12⟧",
        ),
        innocent=("When it asks for the sudo password, it hangs for about ten seconds.",),
    ),
    Credential(
        kind="password told in English, corrected",
        texts=(
            "no, not that one. the correct passwd is ⟦Osprey7" + "7;delta⟧",
            "The credentials are nordvik_ro and ⟦x8RkP2vTqL⟧ (read only).",
            "old password: gone with the old laptop, new password: ⟦Harbour" + "~Tulip6⟧",
        ),
        innocent=("The password policy demands upper and lower case letters, a digit and a special character.",),
    ),
    Credential(
        kind="password told in German, plain",
        texts=(
            "Das Passwort für den Mailserver lautet ⟦Zwetsch" + "ge_2025!⟧",
            "Mein Kennwort ist ⟦Igelball19⟧, kannst du damit den Export machen?",
            "Zugangsdaten: Benutzer admin, Kennwort ⟦Hafen-" + "Kran-77⟧",
        ),
        innocent=(
            "das Passwort habe ich vergessen",
            "Das Kennwort muss mindestens zehn Zeichen lang sein.",
        ),
    ),
    Credential(
        kind="password told in German, casual",
        texts=(
            "logg dich einfach mit ⟦Nebelh" + "orn.331⟧ als Passwort ein",
            "PW: ⟦rT6wLp92⟧ (gilt bis Freitag)",
            "Hab das Passwort auf ⟦Schnee" + "&Besen4⟧ gesetzt, sag Bescheid wenn es klappt",
        ),
        innocent=("Hab das Passwort zurückgesetzt, die Mail sollte gleich da sein.",),
    ),
    Credential(
        kind="password told in German, indirect",
        texts=(
            'Für die Datenbank nimmst du den Nutzer kasse mit dem Passwort "⟦Rotkehl' + 'chen-5x⟧".',
            "Die Fritzbox will ein Kennwort, gib da ⟦amsel4812⟧ ein",
            "Das Masterpasswort von KeePass: ⟦Drei Birnen ta" + "nzen im Regen 9⟧",
        ),
        innocent=("Wo finde ich das Gerätekennwort der Fritzbox?",),
    ),
    Credential(
        kind="password told in Chinese",
        texts=(
            "服务器密码是 ⟦Yun!do" + "ng2031⟧，用户名 root",
            "数据库账号 app，密码：⟦q8Zx_n" + "anjing⟧",
            "我把后台口令改成了 ⟦chunfeng@77⟧",
        ),
        innocent=(
            "密码忘了怎么办",
            "密码长度至少 12 位，必须包含数字和字母",
        ),
    ),
    Credential(
        kind="password told in Chinese, casual",
        texts=(
            "帮我登录一下，账号 wang_li 密码 ⟦Lw19880412x⟧",
            "压缩包解压密码:⟦baidu9f3k⟧",
            "用 ⟦Xiaolo" + "ng#6612⟧ 这个密码连 VPN",
        ),
        innocent=("如何修改 root 用户的登录密码？",),
    ),
    Credential(
        kind="PIN",
        texts=(
            "the PIN of the company card is ⟦4927⟧",
            "SIM-PIN: ⟦8160⟧, PUK liegt im Tresor",
            "门禁的 PIN 码是 ⟦730518⟧",
        ),
        innocent=("Pin 14 of the connector carries 3.3 V, pin 15 is ground.",),
    ),
    Credential(
        kind="one-time code",
        texts=(
            "Your verification code is ⟦381 704⟧. Do not share it with anyone.",
            "Ihr Bestätigungscode lautet ⟦920457⟧ und ist 10 Minuten gültig.",
            "【云通信】您的验证码为 ⟦605283⟧,5 分钟内有效",
        ),
        innocent=("the token expires after 10 minutes",),
    ),
    Credential(
        kind="PUK and door codes",
        texts=(
            "PUK1 ⟦48201937⟧ für die neue SIM",
            "alarm code for the warehouse: ⟦5591#⟧",
            "The key safe next to the door opens with ⟦2746⟧",
        ),
        innocent=("error code 2746 means that the remote host closed the connection",),
    ),
    Credential(
        kind="seed phrase",
        texts=(
            "my wallet recovery phrase: ⟦guitar gravity mushroom echo dinosaur wi"
            + "ndow dragon ladder afford noodle april balcony⟧",
            'MNEMONIC="⟦balcony rocket apple uncle bronze fabric' + ' timber jaguar spider venue pluck winter⟧"',
            "Die zwölf Wörter vom Ledger sind ⟦pluck pepper lava gravity puzzle attrac"
            + "t panda canvas abandon wolf pigeon mango⟧",
        ),
        innocent=(
            "Write the twelve words of the recovery phrase on paper and keep it in a safe place.",
            "The colors, textures, wooden floors, large windows and plain walls gave each room quiet dignity.",
        ),
    ),
    Credential(
        kind="seed phrase of 24 words",
        texts=(
            'hardhat: accounts: { mnemonic: "⟦casino mosquito humble oyster scissors b'
            + "adge ivory budget cargo bitter gadget oxygen ocean urban arrow jungle ostrich zero yellow atom cri"
            + 'cket acoustic wrestle mountain⟧" }',
            "助记词：⟦castle bottom bacon napkin planet peanut"
            + " forest echo afford winter rival alien wolf mirror kangaroo arrow elephant curtain indoor fiction "
            + "oxygen galaxy violin kiwi⟧",
            "Seed (24 words): ⟦humble staff napkin buffalo autumn whale"
            + " bridge volcano ladder canvas beyond garlic lobster bean urban timber swamp cherry vacuum ostrich "
            + "pluck beach wheat nephew⟧",
        ),
        innocent=("A seed of 42 makes the shuffle reproducible: random.seed(42)",),
    ),
    Credential(
        kind="wallet private key",
        texts=(
            "PRIVATE_KEY=⟦0x3ba6c426e819e9a66253ec373a229b9" + "0ed86f2add7f3087eef8bc7e52a2f4957⟧",
            'new ethers.Wallet("⟦a11a84f301b68662c1143c3413cb4615' + '1d7e0787a628edb653c0432a25f95526⟧", provider)',
            "bitcoin-cli importprivkey ⟦KQ6pwAiUGGmPxGW2vJf736Riy6" + "6qZ7d1m6BNJvhb1m8owrpvVH8x⟧",
        ),
        innocent=("contract deployed at 0x874db151bf88318f492894ebf24e98c1ba259143 in block 21884012",),
    ),
    Credential(
        kind="two factor backup codes",
        texts=(
            "GitHub recovery codes:\n⟦2cacf-80b7d\n0a1e1-e7143" + "\n" + "36750-d7765\n" + "f7e7a-3c85a⟧",
            "Google backup codes: ⟦6375 1666  8098" + " 4087  7904 8913⟧",
            "nimm den Backup-Code ⟦cayv-" + "ul1n-1qvw⟧, falls die App nicht geht",
        ),
        innocent=("Each backup code can be used once. Generate new codes in the security settings.",),
    ),
    Credential(
        kind="TOTP secret",
        texts=(
            "otpauth://totp/Nordvik:mwinkler?secret=⟦EBFX" + "USPWCRFDFACXK73FENVLCLUUSRYK⟧&issuer=Nordvik&digits=6",
            "oathtool --totp -b ⟦LZN5OO3U" + "N3DUT4JC⟧",
            "can't scan? enter this setup key: ⟦fyyg zl7c mb3a zojs" + " ridv hvk7 nmg7 2i5z⟧",
        ),
        innocent=("otpauth://totp/{label}?secret={secret}&issuer={issuer}",),
    ),
    Credential(
        kind="credit card number, Visa",
        texts=(
            "please charge ⟦4855 8218" + " 9037 3266⟧, exp 09/28",
            '{"card": {"number": "⟦43696201' + '87966249⟧", "exp_month": 4, "exp_year": 2029}}',
            "Meine Kreditkarte: ⟦4889-9706" + "-4869-5627⟧, gültig bis 11/27",
        ),
        innocent=("Order number 4516326282342225 was shipped on Tuesday.",),
    ),
    Credential(
        kind="credit card number, Mastercard and Amex",
        texts=(
            "the amex ends in 2028: ⟦3756 155" + "020 70461⟧",
            "INFO payment form cardNumber=⟦53634787" + "94354587⟧ amount=129.90",
            "信用卡号 ⟦5562 9942" + " 0005 6714⟧，帮我填到表单里",
        ),
        innocent=("tracking id 5341973159703875, timestamp 1772438122004519",),
    ),
    Credential(
        kind="card security code",
        texts=(
            "CVV ⟦318⟧, the rest of the card data is already in the form",
            '"cvc": "⟦907⟧"',
            "Die Prüfnummer auf der Rückseite ist ⟦642⟧",
        ),
        innocent=("The CVV is the three digit code on the back of the card.",),
    ),
    Credential(
        kind="IBAN",
        texts=(
            "bitte überweisen an ⟦DE83 1174 760" + "8 3256 3980 19⟧, Verwendungszweck Miete",
            "iban: ⟦NL35RIJI6" + "659047149⟧",
            "my account for the refund is ⟦GB89 RQJZ 053" + "5 3724 0119 84⟧",
        ),
        innocent=("An IBAN in Germany has 22 characters: DE, two check digits, bank code and account number.",),
    ),
    Credential(
        kind="IBAN, other countries",
        texts=(
            "Spesen bitte auf ⟦AT24 3338 36" + "23 9649 6170⟧",
            '"creditor": {"name": "Nordvik AS", "iban": "⟦CH19796481' + '68616367061⟧"}',
            "<IBAN>⟦FR04719341255" + "9O5JKJ5V0HSR01⟧</IBAN>",
        ),
        innocent=("ISBN 978-3-16-148410-0, second edition",),
    ),
    Credential(
        kind="environment variable DB_PASS",
        texts=(
            "DB_PASS=⟦m4SLpwwic" + "Kmbw4hL0r⟧",
            "docker run -e MYSQL_ROOT_PASSWORD=⟦Cv." + "k_cYJ0pUf0m⟧ -d mysql:8.4",
            "    environment:\n      POSTGRES_PASSWORD: ⟦hirsch-" + "im-moor⟧",
        ),
        innocent=(
            "password=<your password>",
            "DB_PASS=${DB_PASS:?must be set}",
        ),
    ),
    Credential(
        kind="environment variable SERVICE_TOKEN",
        texts=(
            "MY_SERVICE_TOKEN=⟦FKCaDR2JfDdXPsTpnj5C" + "JZrYwjwSxFwBFmD9Okn6⟧",
            'export INTERNAL_API_KEY="⟦KzB8ImhwkRkWxd__' + 'vy77bf-Q0fwQDJSg⟧"',
            '$env:DEPLOY_SECRET = "⟦H5exeegglrJb3u' + 'a2lN4VNoXhEoXJ⟧"',
        ),
        innocent=(
            "api_key: ${API_KEY}",
            "MAX_TOKENS=4096 TOKENIZER=cl100k_base",
        ),
    ),
    Credential(
        kind="signing key in a config",
        texts=(
            "signing_key: ⟦9elGLp9mLzyQ6foQ77PLY2" + "2SYTTzNzPVoax+ChRKXlx=⟧",
            'SECRET_KEY = "⟦django-' + 'insecure-7f$g3k+^_w7gu*^5hnrdw=d3_p4w51=yb%sddyls0l9e4n#m(y⟧"',
            "secret_key_base: ⟦1917990157c61057d20eedf61552763749b7662e"
            + "951d4f1a8038eacd9d6b0c21d2fd7e754bb2fcc3ecb2caa2c0c855615e087db68d7ef69764b4be828e4606b4⟧",
        ),
        innocent=(
            "signing_key_id: 2026-02-primary",
            'SECRET_KEY = os.environ["DJANGO_SECRET_KEY"]',
        ),
    ),
    Credential(
        kind="Laravel and WordPress keys",
        texts=(
            "APP_KEY=base64:⟦z+MYyJojxFGBHbB7oWez4z" + "C8R6aIXe9kK8TN+kE/ggI=⟧",
            "define('AUTH_KEY', '⟦<2|1kCvIg&u~0I&Puko3N]kKqv+BGJ3/" + "?x}E9x)DV0e!p+/q;d|nO-@*0I!Fbb[|⟧');",
            "define( 'DB_PASSWORD', '⟦TB!D!Gb+" + "MMpB3nM4⟧' );",
        ),
        innocent=("APP_URL=https://kasse.nordvik.no\nAPP_DEBUG=false",),
    ),
    Credential(
        kind="password in source code",
        texts=(
            'conn = smtplib.SMTP("mail.nordvik.no"); conn.login("noreply", "⟦kHRZk4G' + 'H-BjxX1⟧")',
            "const db = mysql.createPool({ host: 'db2', user: 'shop', password: '⟦3gz2tO" + "AwzU1h⟧' });",
            'private static final String PASSWORD = "⟦Kiesgr' + 'ube!55⟧";',
        ),
        innocent=(
            "def check_password(raw_password: str, encoded: str) -> bool:",
            "const { password, passwordRepeat } = form.values;",
        ),
    ),
    Credential(
        kind="password in a command line",
        texts=(
            "curl -u mwinkler:⟦xf1-kE" + "%A-qu#5⟧ https://nextcloud.nordvik.no/remote.php/dav/files/mwinkler/",
            "mysqldump --user=root --password=⟦cKVYxevX" + "7C6pBi7w⟧ shop | gzip > shop.sql.gz",
            "net use Z: \\\\nas2\\projekte ⟦Linde-" + "Allee12⟧ /user:NORDVIK\\mwinkler",
        ),
        innocent=("mysqldump --user=root --password shop | gzip > shop.sql.gz",),
    ),
    Credential(
        kind="password in a command line, tools",
        texts=(
            "ldapsearch -x -D cn=admin,dc=nordvik,dc=no -w ⟦LjYJiP" + "z2F7WB⟧ -b dc=nordvik,dc=no",
            "echo '⟦sMg2Wz" + "?!Wzfa⟧' | sudo -S systemctl restart nginx",
            "openssl pkcs12 -in cert.p12 -nodes -passin pass:⟦dachs3wiese⟧",
        ),
        innocent=("openssl pkcs12 -in cert.p12 -nodes -passin file:/run/secrets/p12",),
    ),
    Credential(
        kind="password in a URL",
        texts=(
            "https://deploy:⟦kWZbR89xT" + "4GQQQUayO⟧@repo.nordvik.no/maven2/releases",
            "ftp://upload:⟦hagebutte9⟧@ftp.nordvik.no/incoming",
            "HTTPS_PROXY=http://nordvik%5Cmwinkler:⟦P%40ssa" + "der%2126⟧@proxy.intern:3128",
        ),
        innocent=("ssh://git@git.nordvik.no:2222/web/shop.git",),
    ),
    Credential(
        kind="password in ini and XML",
        texts=(
            "[smtp]\nuser = noreply\npassword = ⟦jZlS6mq" + "7n.m?RG3⟧",
            '<property name="hibernate.connection.password" value="⟦saVjxt' + 'wtQGRU⟧"/>',
            "<server><id>nexus</id><username>ci</username><password>⟦fe%h1tq5" + "KgYqn1a6⟧</password></server>",
        ),
        innocent=('<input type="password" name="password" autocomplete="current-password" placeholder="Password">',),
    ),
    Credential(
        kind="password in Ansible and Terraform",
        texts=(
            "ansible_become_password: ⟦VsOMx77" + "6eF#1Bk⟧",
            'resource "aws_db_instance" "main" {\n  username = "core"\n'
            + '  password = "⟦rhYWmch8CJk0'
            + 'RdKi7MqjaZxG⟧"\n'
            + "}",
            "ansible_ssh_pass=⟦Sanddorn" + "-8-Kutter⟧ ansible_user=pi",
        ),
        innocent=(
            'resource "random_password" "main" { length = 24 }',
            'ansible_become_password: "{{ vault_become_password }}"',
        ),
    ),
    Credential(
        kind="secret in a log or stack trace",
        texts=(
            "java.lang.IllegalStateException: login failed for user=core password=⟦ojwiDs"
            + "4MCeqtN⟧\n"
            + "\tat no.nordvik.core.Login.check(Login.java:88)",
            "2026-02-19 04:11:02,118 DEBUG config loaded: {'host': 'db2', 'password': '⟦j*2oFK"
            + "y8y_2Z⟧', 'port': 3306}",
            '[error] POST /login body="user=eva&pwd=⟦Kuckuc' + 'k%2B91⟧&remember=1" status=500',
        ),
        innocent=(
            "java.lang.IllegalStateException: login failed for user=core: password expired\n"
            + "\tat no.nordvik.core.Login.check(Login.java:88)",
        ),
    ),
    Credential(
        kind="VPN keys",
        texts=(
            "[Interface]\nPrivateKey = ⟦d0aPQAPx0R+cWScijurLcB"
            + "B8tPUgmgYLQl9vOvXU5KX=⟧\n"
            + "Address = 10.77.0.4/32",
            "PresharedKey = ⟦21h1L+C/KwPaPGyHF6MUY6" + "QVSH02K11FzcyCFTDWzoA=⟧",
            "nordvik.ovpn auth-user-pass: mwinkler / ⟦Eisvog" + "el_640⟧",
        ),
        innocent=("[Peer]\nPublicKey = NPaxz+I0gjT+Ki9My8j23pG6d5wqvIqB5PkYma7+qqM=\n" + "AllowedIPs = 10.77.0.0/24",),
    ),
    Credential(
        kind="MQTT, Home Assistant and router",
        texts=(
            "mosquitto_pub -h 10.0.0.5 -u sensor -P ⟦d0p1Ed" + "Efx3Mt⟧ -t haus/temp -m 21",
            "HASS_TOKEN=⟦eyJhbGciOiJIUzI1NiIsInR5cCI6IkpXVCJ9.eyJ"
            + "zdWIiOiI2NjAzNjcxIiwiYXVkIjoiYXBpIiwiaWF0IjoxNzg4MDg1NDk0LCJleHAiOjE3ODgwODkwOTR9.z1doVlpmdMi6eeWp"
            + "rP4Z3OQ5nGSm3bTwJRZTpoNhTys⟧",
            "snmp-server community ⟦w1nd-rad-RO⟧ RO",
        ),
        innocent=("mqtt topic haus/wohnzimmer/temperatur/sensor_0x00158d0004a2b1c9",),
    ),
    Credential(
        kind="backup and disk encryption",
        texts=(
            "RESTIC_PASSWORD=⟦qsahziV93SQ5" + "6pNdBhtHiP1C⟧ restic snapshots",
            "BORG_PASSPHRASE='⟦vier graue Rei" + "her am Wehr 12⟧'",
            "BitLocker recovery key: ⟦177155-268081-483615-512391" + "-447007-222475-717783-145684⟧",
        ),
        innocent=("restic snapshot 3843eaf6 saved, 1204 files, 18.2 GiB",),
    ),
    Credential(
        kind="license and product keys",
        texts=(
            "Windows product key: ⟦6R8DG-FKX2M-QH" + "DT8-37BBR-TVB37⟧",
            "FONTAWESOME_NPM_AUTH_TOKEN=⟦8183A526-44A5-395A" + "-73BB-CB9ECAFB324A⟧",
            "lizenzschluessel = ⟦P9BH-KBY6" + "-UTOA-T7R3⟧",
        ),
        innocent=("part number NV-2281-0044-B, serial 000482-2026",),
    ),
    Credential(
        kind="Grafana legacy, PostHog and Discourse key",
        texts=(
            "my grafana api key is ⟦eyJrIjoixhl2Ucf2gLeNkKSWAMM0b9hYOnhBTprO"
            + "cYUFoACteLBqGS3TtQc9H90OVyS53iOI31IxVXlT⟧, it is the old format",
            "POSTHOG_PERSONAL_API_KEY=⟦phx_" + "BkyqxzI722OS09QmpDeWduZcddRN58qYyP69uFX4rLD⟧",
            "DISCOURSE_API_KEY: ⟦935e8198d363b91258de796ba3c04a80" + "f6d17284be171ca4afa43094a3e38dc6⟧",
        ),
        innocent=(
            '<img alt="logo" src="data:image/png;base64,iVBORw0KGgoAAAANSUhEUgAAAEAAAABAdm4hObyVsLfdoc/wunuOrYc'
            + "8uJfXaPtMYyvozpljLMLjFTt21nBrdOQU2XZi6WthEQeE+HmKCTcFDIUVwg3LXRE3GxU4FxVO12K2+EqSmjqBpw9Kc9JnrHKsH"
            + 'Iv0tMlF2DLq4yTDaQ7JvYgJ5AX3PzdLPASY8aZPRIrEJ+MqwqHJu9E8Q7f+==">',
            'const cache = new Map([["user:profile:settings:v2:9f8e7d6c5b4a", 12]]);',
        ),
    ),
    Credential(
        kind="AI tools, more keys",
        texts=(
            "CURSOR_API_KEY=⟦key_" + "9f895f80811860210078c89805651f2ffc8a570e2791bcc54b08ce0e6e6d950b⟧",
            "npx firecrawl-mcp --key ⟦fc-" + "7ca6b1c189c18ce32df99e91ca5f873f⟧",
            "VOYAGE_API_KEY=⟦pa-" + "oDX_keaH-oefptMfQbIcW2N5bO9y0pnBiu8p24RWiRa⟧",
        ),
        innocent=("the model has a context of 200000 tokens and the prompt used 18422 of them",),
    ),
    Credential(
        kind="AI tools, tracing and notebooks",
        texts=(
            "WANDB_API_KEY=⟦37076764a8b9c63d7f12" + "828b8c7c1833eae0669b⟧",
            'LANGFUSE_SECRET_KEY="⟦sk-lf-' + '4c4be6ce-e55c-4785-87fd-f7e3ea82b412⟧"',
            "http://127.0.0.1:8888/lab?token=⟦435afd4f9d7679f94648f474" + "c6b08d623b55e2317cbec085⟧",
        ),
        innocent=("wandb: Syncing run fine-tune-sz3w78c6 at https://wandb.ai/nordvik/ranker",),
    ),
    Credential(
        kind="AWS Bedrock key",
        texts=(
            "AWS_BEARER_TOKEN_BEDROCK=⟦ABSK"
            + "QmVkcm9ja0FQSUtleS6b9guIFkxZyqHL20c2Fq0ts5+0+aFAVwi/MTQ1XmuXui664L2WqMC7ZI5ZCHrpTwlkPdDWfRIChQFhyk"
            + "Enl6TrN2L2LsiW/oemA5lqX1zn=⟧",
            'export AWS_BEARER_TOKEN_BEDROCK="⟦ABSK'
            + "QmVkcm9ja0FQSUtleSZtgJensuhmLhlEvXui65s76mPxnQSd3FzjJyOvY91/PVkADNSKALFcz1NATJaH/VwUlfM+9HOoonWzdp"
            + '6bWhqF6rJuAla09S4+fO1qh5iw=⟧"',
            "the bedrock key is ⟦ABSK"
            + "QmVkcm9ja0FQSUtleSMmeJDkhdq+pc1PgdKgU2b2b+pne4vEHPslpkhBOkMd8w6h0MlBGo6a1B8GbU6MB8cHHDT6FwuP+o1VUJ"
            + "Er+05q8H6g6OKbKLt721HMlY4a=⟧, region eu-west-1",
        ),
        innocent=("arn:aws:bedrock:eu-west-1::foundation-model/anthropic.claude-3-5-sonnet-20241022-v2:0",),
    ),
    Credential(
        kind="Firebase and push keys",
        texts=(
            "FCM_SERVER_KEY=⟦AAAA"
            + "spoDnc8:APA91bejypVEePvXvw4M3Fawjb2_sHYKcdDEOMKGTse78Z1QMMJYcZuPk8T2M1oK28VYhekU6w3BvYMK5l2IRMcp6i"
            + "CXNIW3TZ6X44TezAVeR1T77k3a1_ALGxrHlS4gpTgoQf646eFd⟧",
            'vapid_private_key = "⟦V8XJ0SYBmvCgWGtdNRmSM' + 'b6Aq-HjU3GJIBXImoSjlSK⟧"',
            "ONESIGNAL_REST_API_KEY=⟦os_"
            + "v2_app_nnx4yhf3t72kmg2sa4oa34hdi5as7golecbsec3hvbltludigiu7cqpsopxg6jpfdchjtximyqgdlgtnfguo5zk4p5k"
            + "2sju4j5nlidk⟧",
        ),
        innocent=("mAuthDomain=lunchbox-6b1d2.firebaseapp.com, measurementId=G-4K2LQ8XW1T",),
    ),
    Credential(
        kind="OAuth answer",
        texts=(
            '{"access_token":"⟦mEx_'
            + '2bO8c0P6NbbYYM7paeI0YaDS511eaw3PVCahyEW7FCno-yM4VhzqPTdPrlrZ⟧","token_type":"Bearer","expires_in":'
            + '3600,"scope":"read"}',
            "https://app.nordvik.no/callback?code=⟦pO4uYMwmx54xwsucA715Xj0I"
            + "0FcquRDvC4a-_HxGlWerucKc⟧&state=19efe9be3915f053",
            "code_verifier=⟦tuU8-ejH5gYzn-1A792zaOQ_4i8dz7NM"
            + "jtjbMTrBUSMz9Hamv8BDQGAlgfqhTOkK⟧&grant_type=authorization_code",
        ),
        innocent=('{"error":"invalid_token","error_description":"The access token expired","token_type":"Bearer"}',),
    ),
    Credential(
        kind="database users in SQL",
        texts=(
            "CREATE USER 'shop'@'%' IDENTIFIED BY '⟦s*6Zn6Vb" + "rz0VPBBn⟧';",
            "ALTER ROLE report WITH LOGIN PASSWORD '⟦8z0qGj07" + "w5YaB80L⟧';",
            "GRANT ALL ON wiki.* TO wiki@localhost IDENTIFIED BY '⟦Torf.Moos77⟧';",
        ),
        innocent=("SELECT id, password_changed_at FROM users WHERE password_hash IS NULL;",),
    ),
    Credential(
        kind="MCP configuration",
        texts=(
            '"mcpServers": {"search": {"command": "npx", "args": ["-y", "brave-mcp"], "env": {"BRAVE_API_KEY": '
            + '"⟦BSAJ'
            + '7k6nnNIUC7e-SOB8lXZxggLEEE7⟧"}}}',
            'claude mcp add --transport http ctx https://mcp.context7.com/mcp --header "CONTEXT7_API_KEY: ⟦ctx7'
            + "sk-a90d3883-b425-"
            + '46c0-bc25-4f14764cf3a6⟧"',
            'headers = { "X-Api-Key" = "⟦wGsTSCvkMh8Qe77I' + 'loV9RfXLOiTrtzzA⟧" }',
        ),
        innocent=(
            '"mcpServers": {"files": {"command": "npx", "args": ["-y", "@modelcontextprotocol/server-filesystem'
            + '", "/srv/data"]}}',
        ),
    ),
    Credential(
        kind="Maven, Gradle and app signing",
        texts=(
            "storePassword=⟦DJJA" + "QiAIHVal⟧",
            "signing.password=⟦Wiesel" + "+Fuchs3⟧",
            "./gradlew assembleRelease -Pandroid.injected.signing.key.password=⟦1wmhvXp" + "WrcxuNV⟧",
        ),
        innocent=("storeFile=../keystores/release.jks\nkeyAlias=upload",),
    ),
)
