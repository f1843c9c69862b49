import pytest

from passgate.tasks.providers.calls import headers_back, headers_out, mask_secrets

FIXED = [(b"host", b"models.example")]


def out(**passed: str) -> dict[bytes, bytes]:
    named = {name.replace("_", "-"): value for name, value in passed.items()}
    return dict(headers_out(FIXED, named, length=2, has_key=False))


def test_a_body_has_its_length_and_is_json_unless_said_otherwise() -> None:
    assert out() == {b"host": b"models.example", b"content-length": b"2", b"content-type": b"application/json"}
    assert out(Content_Type="application/vnd.x+json")[b"content-type"] == b"application/vnd.x+json"
    assert dict(headers_out(FIXED, {}, length=None, has_key=False)) == dict(FIXED)


@pytest.mark.parametrize("value", ["a\r\nx-evil: 1", "a\x00b", "a\nb", "\N{SNOWMAN}"])
def test_a_header_that_cannot_be_sent_is_left_out(value: str) -> None:
    improper = {"bad name": "1", "": "2", "naïve": "3"}
    assert set(headers_out(FIXED, {"x-note": value, **improper}, length=None, has_key=False)) == set(FIXED)


@pytest.mark.parametrize(
    "name",
    [
        *("Forwarded", "Via", "X_Forwarded_For", "X_Forwarded_Host", "X_Forwarded_Prefix", "X_Real_IP", "X_Host"),
        *("X_Original_URL", "X_Rewrite_URL", "X_HTTP_Method_Override", "X_Method_Override", "X_Original_Host"),
        *("Host", "Connection", "Keep_Alive", "TE", "Upgrade", "Proxy_Authorization", "Transfer_Encoding", "Trailer"),
    ],
)
def test_what_proxies_say_of_a_request_does_not_go_on(name: str) -> None:
    assert set(out(**{name: "elsewhere"})) == set(out())


def test_headers_of_an_answer_have_lower_case_names() -> None:
    own = [(b"Content-Type", b"application/json"), (b"X-Request-Id", b"r\xe9"), (b"Vary", b"a"), (b"vary", b"b")]
    hop = [(b"Connection", b"close"), (b"Content-Length", b"2"), (b"Transfer-Encoding", b"chunked")]
    back = headers_back([*own, *hop, (b"Set-Cookie", b"a=b")])
    assert back == {
        "content-type": "application/json",
        "x-request-id": "ré",
        "vary": "a, b",
    }


def test_every_key_that_was_sent_is_masked() -> None:
    sent = [(b"authorization", b"Bearer sk-12345678"), (b"x-goog-api-key", b"AIza1234"), (b"accept", b"anything")]
    text = "sk-12345678 and AIza1234 want anything"
    assert mask_secrets(text, sent) == "*** and *** want anything"
