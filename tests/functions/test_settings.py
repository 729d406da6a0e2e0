"""The environment as one value."""

import base64

import pytest

from functions.settings import Settings, SettingsError, is_loopback, read_settings

KEY = base64.b64encode(bytes(32)).decode()
LOCAL = {"ALLOW_INSECURE_LOCAL": "1", "NOEMA_ENDPOINT_HOST": "127.0.0.1"}


def test_what_mcp_is_served_to() -> None:
    """Hosts and origins are comma lists in lower case; an origin that is none is refused by its variable's name."""
    settings = read_settings(
        {
            "MCP_HTTP_ALLOWED_HOSTS": "Memory.example.org, localhost:8042,",
            "MCP_HTTP_ALLOWED_ORIGINS": "https://A.example",
        }
    )

    assert settings.mcp_hosts == ("memory.example.org", "localhost:8042")
    assert settings.mcp_origins == ("https://a.example",)
    assert read_settings({}).mcp_hosts == read_settings({}).mcp_origins == ()
    with pytest.raises(SettingsError, match="MCP_HTTP_ALLOWED_ORIGINS"):
        read_settings({"MCP_HTTP_ALLOWED_ORIGINS": "a.example"})


def test_an_empty_environment_is_locked() -> None:
    """Nobody is admitted where nothing is configured."""
    settings = read_settings({})

    assert settings == Settings()
    assert settings.locked


def test_everything_can_be_set() -> None:
    """Each variable reaches its member; lists are cut at commas and blank entries are skipped."""
    settings = read_settings(
        {
            "NOEMA_STORE": "aws",
            "NOEMA_DATA_DIR": "/data",
            "NOEMA_TABLE": "t",
            "NOEMA_BUCKET": "b",
            "NOEMA_QUEUE_URL": "q",
            "ED25519_PUBKEYS": f"{KEY}, {KEY.rstrip('=')},",
            "NOEMA_ADMIN_PUBKEYS": KEY,
            "MANAGERS": "boss, aaaaa-aa",
            "CORS_ORIGINS": "https://App.example.org,http://localhost:3000",
            "SHARDING_IDX": "7",
        }
    )

    assert len(settings.tenant_keys) == 2
    assert len(settings.admin_keys) == 1
    assert settings.managers == ("boss", "aaaaa-aa")
    assert settings.cors_origins == ("https://app.example.org", "http://localhost:3000")
    assert (settings.store, settings.table, settings.bucket, settings.queue_url) == ("aws", "t", "b", "q")
    assert settings.sharding == 7
    assert not settings.locked


BAD = {
    "NOEMA_STORE": {"NOEMA_STORE": "redis"},
    "NOEMA_TABLE": {"NOEMA_STORE": "aws"},
    "NOEMA_BUCKET": {"NOEMA_STORE": "aws", "NOEMA_TABLE": "t"},
    "NOEMA_QUEUE_URL": {"NOEMA_STORE": "aws", "NOEMA_TABLE": "t", "NOEMA_BUCKET": "b"},
    "ED25519_PUBKEYS, entry 2": {"ED25519_PUBKEYS": f"{KEY},nonsense"},
    "NOEMA_ADMIN_PUBKEYS, entry 1": {"NOEMA_ADMIN_PUBKEYS": "x"},
    "CORS_ORIGINS, entry 1": {"CORS_ORIGINS": "example.org"},
    "SHARDING_IDX": {"SHARDING_IDX": "-1"},
    "ALLOW_INSECURE_LOCAL": {"ALLOW_INSECURE_LOCAL": "yes"},
}


@pytest.mark.parametrize("name", BAD)
def test_a_bad_variable_is_named(name: str) -> None:
    """One bad entry fails the start, and the message says which."""
    with pytest.raises(SettingsError, match=f"^{name}"):
        read_settings(BAD[name])


def test_shards_are_32_bits() -> None:
    """A shard is a u32."""
    assert read_settings({"SHARDING_IDX": str(2**32 - 1)}).sharding == 2**32 - 1
    with pytest.raises(SettingsError):
        read_settings({"SHARDING_IDX": str(2**32)})


def test_running_without_keys_takes_a_wish_and_a_loopback_listener() -> None:
    """ALLOW_INSECURE_LOCAL opens only a listener that no other machine reaches."""
    assert read_settings(LOCAL).insecure_local
    assert not read_settings(LOCAL).locked
    assert not read_settings({**LOCAL, "ALLOW_INSECURE_LOCAL": "0"}).insecure_local
    for host in ("", "0.0.0.0", "192.168.1.2", "::", "example.org", "localhost.example.org"):
        with pytest.raises(SettingsError, match="ALLOW_INSECURE_LOCAL"):
            read_settings({**LOCAL, "NOEMA_ENDPOINT_HOST": host})


def test_a_deployed_function_never_runs_without_keys() -> None:
    """On Lambda the wish is refused, whatever the listener claims to be."""
    with pytest.raises(SettingsError, match="ALLOW_INSECURE_LOCAL"):
        read_settings({**LOCAL, "AWS_LAMBDA_FUNCTION_NAME": "noema-reads"})
    local = {"ALLOW_INSECURE_LOCAL": "1", "AWS_LAMBDA_FUNCTION_NAME": "reads", "AWS_SAM_LOCAL": "true"}
    assert read_settings(local).insecure_local


@pytest.mark.parametrize("name", ["ED25519_PUBKEYS", "NOEMA_ADMIN_PUBKEYS"])
def test_with_keys_the_wish_counts_for_nothing(name: str) -> None:
    """Where any key is configured, every caller needs a token."""
    assert not read_settings({**LOCAL, name: KEY}).insecure_local


def test_loopback_is_this_machine() -> None:
    """127.0.0.0/8, ::1 and localhost, with or without brackets."""
    assert all(is_loopback(host) for host in ("127.0.0.1", "127.9.9.9", "::1", "[::1]", "LOCALHOST"))
    assert not any(is_loopback(host) for host in ("", "128.0.0.1", "::2", "0.0.0.0", "127.0.0.1.nip.io"))


def test_the_facts_tokenizer_is_one_of_three() -> None:
    """Unicode where nothing is said; GrayMatter's where it is asked for; another name is refused by the variable's."""
    assert read_settings({}).facts_tokenizer == "unicode"
    assert read_settings({"NOEMA_FACTS_TOKENIZER": "ascii-stem"}).facts_tokenizer == "ascii-stem"
    with pytest.raises(SettingsError, match="NOEMA_FACTS_TOKENIZER"):
        read_settings({"NOEMA_FACTS_TOKENIZER": "porter"})


def test_spaces_come_to_be_over_mcp_only_where_that_is_wanted() -> None:
    """Off, or a tier; another word and a tier that there is not are refused by the variable's name."""
    wish = {"MCP_HTTP_AUTO_CREATE_SPACE": "true"}
    assert read_settings({"MCP_HTTP_AUTO_CREATE_TIER": "3"}).mcp_create_tier is None
    assert read_settings(wish).mcp_create_tier == 1
    assert read_settings({**wish, "MCP_HTTP_AUTO_CREATE_TIER": "0"}).mcp_create_tier == 0
    for bad in (
        {"MCP_HTTP_AUTO_CREATE_SPACE": "yes"},
        *({**wish, "MCP_HTTP_AUTO_CREATE_TIER": n} for n in ("-1", "15", "x")),
    ):
        with pytest.raises(SettingsError, match="MCP_HTTP_AUTO_CREATE_"):
            read_settings(bad)
