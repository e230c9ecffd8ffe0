"""From names to targets: every rule for names, and everything that goes into a target."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from every_model import every_target
from mull.catalog.load import load, shipped
from mull.catalog.names import close, either, listed
from mull.catalog.resolve import GENERIC, resolve
from mull.neutral.errors import (
    AmbiguousModel,
    ConfigError,
    LocalError,
    UnknownLevel,
    UnknownModel,
)
from mull.neutral.thinking import LADDER, as_level

HEADER = b'{"format":1,"sources":[],"providers":0}\n'
OWN = {
    "claudia": {"env": ["CLAUDIA_KEY"], "api": "https://claudia/v1/", "models": {"one": {}}},
    "b": {
        "env": ["B_KEY", "B_OTHER"],
        "api": "https://b/v1",
        "models": {
            "one": {},
            "two-20250101": {"release_date": "2025-01-01"},
            "two-20240101": {"release_date": "2024-01-01"},
            "three-4-5": {},
            "Org/Four": {"provider": {"npm": "@ai-sdk/anthropic", "api": "https://b/anthropic/"}},
            "five-preview": {},
            "six-2501-preview": {"release_date": "2025-01-01"},
        },
    },
    "c": {"env": ["C_KEY"], "api": "https://c/v1", "models": {"one": {}, "b/seven": {}}},
}


@pytest.fixture(scope="module")
def small():
    return load([OWN], HEADER)


def named(name: str, **how) -> tuple[str, str]:
    target = resolve(name, **how)
    return target.provider, target.model


def test_every_model_of_the_catalog_is_found_by_its_full_name():
    for (provider, model), target in every_target().items():
        assert (target.provider, target.model, target.known) == (provider, model, True)
        assert target.notes == ()


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("claude-sonnet-4-5", "anthropic/claude-sonnet-4-5"),
        ("claude-sonnet-4-5/high", "anthropic/claude-sonnet-4-5"),
        ("anthropic/claude-sonnet-4-5/50000", "anthropic/claude-sonnet-4-5"),
        ("Anthropic/Claude-Sonnet-4-5", "anthropic/claude-sonnet-4-5"),
        ("  claude-sonnet-4-5  ", "anthropic/claude-sonnet-4-5"),
        ("claude-sonnet-4.5", "anthropic/claude-sonnet-4-5"),
        ("claude-3-7-sonnet", "anthropic/claude-3-7-sonnet-20250219"),
        ("claude-3-5-sonnet", "anthropic/claude-3-5-sonnet-20241022"),
        ("claude-3-7-sonnet-thinking", "anthropic/claude-3-7-sonnet-20250219"),
        ("claude-sonnet-4-5-thinking", "anthropic/claude-sonnet-4-5"),
        ("claude-3-7-sonnet-latest", "anthropic/claude-3-7-sonnet-latest"),
        ("gpt-5", "openai/gpt-5"),
        ("o3", "openai/o3"),
        ("gemini-2.5-pro", "google/gemini-2.5-pro"),
        ("gemini-3-pro", "google/gemini-3-pro-preview"),
        ("google/gemini-3-pro", "google/gemini-3-pro"),
        ("anthropic/claude-3-7-sonnet", "anthropic/claude-3-7-sonnet-20250219"),
        ("xai/grok-4", "xai/grok-4"),
        ("moonshotai/kimi-k2", "moonshotai/kimi-k2"),
        ("kimi-k2-thinking", "moonshotai/kimi-k2-thinking"),
        ("kimi-k2", "moonshotai/kimi-k2-0905-preview"),
        ("moonshotai/Kimi-K2-Thinking", "moonshotai/kimi-k2-thinking"),
        ("deepseek-reasoner", "deepseek/deepseek-reasoner"),
        ("glm-4.7", "zai/glm-4.7"),
        (
            "openrouter/moonshotai/kimi-k2-thinking/high",
            "openrouter/moonshotai/kimi-k2-thinking",
        ),
        ("huggingface/moonshotai/Kimi-K2-Thinking", "huggingface/moonshotai/Kimi-K2-Thinking"),
        ("github-copilot/claude-sonnet-4-5", "github-copilot/claude-sonnet-4.5"),
    ],
)
def test_names_as_people_write_them(name, expected):
    assert resolve(name).name == expected


def test_the_whole_target_of_a_known_model():
    target = resolve("deepseek-reasoner")
    assert target.provider == "deepseek"
    assert target.provider_name == "DeepSeek"
    assert target.dialect == "openai-chat"
    assert target.endpoint == "https://api.deepseek.com"
    assert target.key_env == ("DEEPSEEK_API_KEY",)
    assert target.known
    assert target.facts.reasoning
    assert target.facts.source is None


@pytest.mark.parametrize(
    ("name", "provider_name", "dialect", "endpoint"),
    [
        ("claude-sonnet-4-5", "Anthropic", "anthropic", "https://api.anthropic.com/v1"),
        ("gpt-5.1", "OpenAI", "openai-responses", "https://api.openai.com/v1"),
        (
            "gemini-2.5-pro",
            "Google",
            "gemini",
            "https://generativelanguage.googleapis.com/v1beta",
        ),
        ("kimi-k2-thinking", "Moonshot AI", "openai-chat", "https://api.moonshot.ai/v1"),
    ],
)
def test_provider_dialect_and_endpoint(name, provider_name, dialect, endpoint):
    target = resolve(name)
    assert (target.provider_name, target.dialect) == (provider_name, dialect)
    assert target.endpoint == endpoint


def test_budgets_of_the_documents():
    budgets = {
        name: resolve(name).facts.budget
        for name in ("claude-sonnet-4-5", "claude-haiku-4-5", "claude-3-7-sonnet", "gemini-2.5-pro")
    }
    assert {name: (b.min, b.max) for name, b in budgets.items() if b} == {
        "claude-sonnet-4-5": (1024, 64000),
        "claude-haiku-4-5": (1024, 32000),
        "claude-3-7-sonnet": (1024, 32000),
        "gemini-2.5-pro": (128, 32768),
    }


def test_a_bare_name_at_several_providers(small):
    with pytest.raises(AmbiguousModel) as caught:
        resolve("one", catalog=small)
    assert caught.value.candidates == ("claudia/one", "b/one", "c/one")
    assert str(caught.value) == (
        "3 providers have 'one': claudia/one, b/one, c/one.\n"
        "Write one of them in full, or set the key of one of them."
    )


def test_a_long_list_of_providers_is_shortened():
    with pytest.raises(AmbiguousModel) as caught:
        resolve("qwen/qwen3-max")
    first, second = str(caught.value).splitlines()
    assert first.startswith("6 providers have 'qwen/qwen3-max': kilo/qwen/qwen3-max, ")
    assert first.endswith(" and 1 more.")
    assert second == "Write one of them in full, or set the key of one of them."
    assert len(caught.value.candidates) == 6


def test_the_one_provider_whose_key_is_set(small):
    assert named("one", catalog=small, keys={"B_OTHER"}) == ("b", "one")
    assert named("qwen/qwen3-max", keys={"OPENROUTER_API_KEY"}) == ("openrouter", "qwen/qwen3-max")
    with pytest.raises(AmbiguousModel) as caught:
        resolve("one", catalog=small, keys={"B_KEY", "C_KEY"})
    assert caught.value.candidates == ("b/one", "c/one", "claudia/one")


def test_the_maker_goes_before_a_provider_with_a_key():
    assert named("kimi-k2-thinking", keys={"OPENCODE_API_KEY"})[0] == "moonshotai"


def test_the_makers_own_spelling_goes_before_guessing_among_resellers():
    assert named("claude-sonnet-4.5")[0] == "anthropic"
    assert named("claude-sonnet-4.5", keys={"GITHUB_TOKEN"})[0] == "github-copilot"
    both = {"GITHUB_TOKEN", "ANTHROPIC_API_KEY"}
    assert named("claude-sonnet-4.5", keys=both)[0] == "anthropic"


@pytest.mark.parametrize(
    ("name", "expected", "notes"),
    [
        ("Two-20240101", ("b", "two-20240101"), ()),
        ("two", ("b", "two-20250101"), ("'two' is taken as two-20250101, the newest of them",)),
        (
            "two-20990101",
            ("b", "two-20990101"),
            ("'two-20990101' is not in the catalog; the facts are those of two-20250101",),
        ),
        (
            "three-4-5-20990101",
            ("b", "three-4-5-20990101"),
            ("'three-4-5-20990101' is not in the catalog; the facts are those of three-4-5",),
        ),
        (
            "three-4.5-latest",
            ("b", "three-4-5-latest"),
            (
                "'three-4.5-latest' is not in the catalog; three-4-5-latest is sent; the facts are"
                " those of three-4-5",
            ),
        ),
        ("three-4.5", ("b", "three-4-5"), ("'three-4.5' is taken as three-4-5",)),
        (
            "Three-4.5-Thinking",
            ("b", "three-4-5"),
            (
                "'Three-4.5-Thinking' asks three-4-5 to think",
                "three-4-5 does not reason",
            ),
        ),
        (
            "two-thinking",
            ("b", "two-20250101"),
            (
                "'two-thinking' asks two-20250101 to think",
                "two-20250101 does not reason",
            ),
        ),
        ("five", ("b", "five-preview"), ("'five' is taken as five-preview",)),
        (
            "six",
            ("b", "six-2501-preview"),
            ("'six' is taken as six-2501-preview, the newest of them",),
        ),
        ("org/four", ("b", "Org/Four"), ()),
        ("B/THREE-4.5", ("b", "three-4-5"), ("'THREE-4.5' is taken as three-4-5",)),
        (
            "b/five",
            ("b", "five"),
            ("'five' is not in the catalog; the facts are those of five-preview",),
        ),
        (
            "b/six",
            ("b", "six"),
            ("'six' is not in the catalog; the facts are those of six-2501-preview",),
        ),
        ("b/two", ("b", "two-20250101"), ("'two' is taken as two-20250101, the newest of them",)),
    ],
)
def test_each_rule_for_names(small, name, expected, notes):
    target = resolve(name, catalog=small)
    assert (target.provider, target.model) == expected
    assert target.notes == notes
    assert target.known


DATES = ["0309", "2603", "250615", "20250219", "2025-04-14", "08-2024", "05-20", "0229"]
NO_DATES = [
    "20-0309",
    "1301",
    "0230",
    "0000",
    "1950",
    "20251301",
    "20250229",
    "19990101",
    "13-2025",
]
NO_DATES += ["70b", "001", "4096", "2025-13-01", "02-30", "999999", "250230", "v1:0"]


@pytest.mark.parametrize(("tails", "sent"), [(DATES, True), (NO_DATES, False)])
def test_only_a_day_or_month_of_the_calendar_is_added_to_a_name_in_full(tails, sent):
    for tail in tails:
        one = load([{"p": {"api": "https://p/v1", "models": {f"some.4-{tail}": {}}}}], HEADER)
        for typed in ("some.4", "some-4", "SOME.4"):
            target = resolve(f"p/{typed}", catalog=one)
            assert target.model == (f"some.4-{tail}" if sent else typed), tail
            assert target.notes, tail


@pytest.mark.parametrize(
    ("ids", "newest"),
    [
        ({"m-2411": "2024-11-18", "m-2512": "2024-11-01"}, "m-2512"),
        ({"m-08-2024": "2025-01-01", "m-03-2025": "2024-01-01"}, "m-03-2025"),
        ({"m-0709": "2025-07-09", "m-0309": "2026-03-09"}, "m-0309"),
        ({"m-0309": "2026-03-09", "m-2025-12-01": "2025-12-01"}, "m-0309"),
    ],
)
def test_the_newest_is_so_by_its_own_date(ids, newest):
    """The catalog's day of release may be that of an earlier id, but a date may lack its year."""
    models = {name: {"release_date": day} for name, day in ids.items()}
    one = load([{"p": {"api": "https://p/v1", "models": models}}], HEADER)
    assert resolve("p/m", catalog=one).model == newest
    assert resolve("m", catalog=one).model == newest


def test_mistral_large_is_the_one_of_december():
    assert resolve("mistral/mistral-large").model == "mistral-large-2512"


def test_a_version_is_no_date():
    for known in ("grok-4.20-0309", "grok-4.0309", "grok-4.2025-04-14", "grok-4-0309.1"):
        one = load([{"p": {"api": "https://p/v1", "models": {known: {}}}}], HEADER)
        assert resolve("p/grok-4", catalog=one).model == "grok-4"
        with pytest.raises(UnknownModel):
            resolve("grok-4", catalog=one)


def test_the_beginning_of_a_listed_name_never_silently_becomes_another_model():
    catalog, tried = shipped(), 0
    for provider in catalog.providers.values():
        names = catalog.names_of(provider)
        ids = {model.lower() for model in provider.models}
        cuts = {m[: c.start()] for m in provider.models for c in re.finditer(r"(?<=.)[-.:@]", m)}
        for typed in sorted(cut for cut in cuts if cut.lower() not in ids):
            for hit in names.find(typed, in_full=True):
                added = hit.wire[len(typed) :]
                folded = hit.wire.lower().replace(".", "-")
                assert folded.startswith(typed.lower().replace(".", "-")), (typed, hit)
                assert not added or re.fullmatch(r"[-@][0-9-]{4,10}", added), (typed, hit)
                assert repr(typed) in (hit.note or ""), (typed, hit)
            tried += 1
    assert tried > 5000


def test_a_models_own_way(small):
    target = resolve("Org/Four", catalog=small)
    assert (target.dialect, target.endpoint) == ("anthropic", "https://b/anthropic")


def test_an_unlisted_model_of_a_known_provider_is_usable():
    target = resolve("anthropic/claude-sonet-4-5")
    assert (target.model, target.known, target.dialect) == ("claude-sonet-4-5", False, "anthropic")
    assert target.notes == (
        "'claude-sonet-4-5' is not in the catalog; did you mean claude-sonnet-4-5, "
        "claude-sonnet-5-5 or claude-sonnet-4-6?",
    )
    assert target.facts.limit.context is None
    assert target.facts.cost is None


def test_an_unlisted_claude_has_the_range_of_sonnet():
    budget = resolve("anthropic/claude-unheard-of").facts.budget
    assert budget is not None
    assert (budget.min, budget.max) == (1024, 64000)


def test_an_unlisted_model_that_is_like_nothing_else():
    target = resolve("deepseek/zzz")
    assert target.notes == ("'zzz' is not in the catalog",)
    assert not target.facts.reasoning


def test_an_unknown_bare_name():
    with pytest.raises(UnknownModel) as caught:
        resolve("claud-sonet-4-5")
    assert caught.value.candidates == (
        "claude-sonnet-4-5",
        "claude-sonnet-5-5",
        "claude-sonnet-4-6",
    )
    assert str(caught.value) == (
        "there is no model 'claud-sonet-4-5'; "
        "did you mean claude-sonnet-4-5, claude-sonnet-5-5 or claude-sonnet-4-6?"
    )
    with pytest.raises(
        UnknownModel, match=r"^there is no model 'zq'; search with `mull models WORD`"
    ):
        resolve("zq")


@pytest.mark.parametrize(
    ("name", "first"),
    [
        ("claude/sonnet-4-5", "anthropic/claude-sonnet-4-5"),
        ("antropic/claude-sonnet-4-5", "anthropic/claude-sonnet-4-5"),
        ("moonshoot/kimi-k2-thinking", "moonshotai/kimi-k2-thinking"),
        ("kimi-k2-thinkng", "kimi-k2-thinking"),
        ("gemini-25-pro", "gemini-2.5-pro"),
        ("openruter/anthropic/claude-sonnet-4.5", "openrouter/anthropic/claude-sonnet-4.5"),
    ],
)
def test_the_maker_is_suggested_before_those_who_resell(name, first):
    with pytest.raises(UnknownModel) as caught:
        resolve(name)
    assert caught.value.candidates[0] == first
    assert str(caught.value).startswith(f"there is no model {name!r}; did you mean {first}")


HEADS = (
    "claude-sonnet-4-5",
    "anthropic/claude-sonnet-4-5",
    "Claude-Sonnet-4.5",
    "claude-sonnet-4-5-thinking",
    "o3",
    "gemini-3-pro",
    "qwen/qwen3-max",
    "openrouter/moonshotai/kimi-k2-thinking",
    "gpt-4o",
)
PROVIDERS = ("anthropic/", "qwen/", "openrouter/")


@pytest.mark.parametrize("url", [None, "http://127.0.0.1:9/v1"])
@pytest.mark.parametrize("head", HEADS)
@pytest.mark.parametrize(
    "word", ["hihg", "HGIH", "medum", "lo", "x-high", "maximum", "50k", "1,000"]
)
def test_a_misspelt_level_behind_a_known_model_is_told_with_the_levels(head, word, url):
    with pytest.raises(UnknownLevel) as caught:
        resolve(f"{head}/{word}", base_url=url)
    assert str(caught.value) == (
        f"{head} has no level {word!r}: "
        "use none, minimal, low, medium, high, xhigh or max, or a number of tokens"
    )
    assert caught.value.candidates == tuple(f"{head}/{level}" for level in LADDER)


@pytest.mark.parametrize("word", ["extreme", "hard", "ultra", "1e4", "10 000", "please"])
@pytest.mark.parametrize("head", [head for head in HEADS if not head.startswith(PROVIDERS)])
def test_any_other_word_behind_a_known_model_was_meant_as_a_level(head, word):
    with pytest.raises(UnknownLevel, match=f"^{re.escape(head)} has no level '{word}': use none"):
        resolve(f"{head}/{word}")
    assert resolve(f"{head}/{word}", base_url="http://127.0.0.1:9/v1").model.endswith(word)


@pytest.mark.parametrize("url", [None, "http://127.0.0.1:9/v1"])
@pytest.mark.parametrize("two", ["high/high", "high/low", "5000/high", "MED/5000"])
@pytest.mark.parametrize("head", HEADS)
def test_of_two_levels_it_is_told_that_there_are_two(head, two, url):
    with pytest.raises(UnknownLevel) as caught:
        resolve(f"{head}/{two}", base_url=url)
    first, _, _ = two.partition("/")
    assert str(caught.value) == (
        f"only one level can follow a model's name: {head}/{first}, or the one after it"
    )


@given(st.sampled_from(LADDER), st.integers(0, 6), st.sampled_from("abcxyz"), st.integers(0, 3))
def test_one_slip_of_the_finger_in_a_level_is_recognised(level, at, letter, slip):
    at %= len(level)
    wrong = (
        level[:at] + level[at + 1 :],
        level[:at] + letter + level[at + 1 :],
        level[:at] + letter + level[at:],
        level[:at] + level[at : at + 2][::-1] + level[at + 2 :],
    )[slip]
    if as_level(wrong) is None:
        with pytest.raises(UnknownLevel):
            resolve(f"claude-sonnet-4-5/{wrong}")


@pytest.mark.parametrize(
    ("name", "url"),
    [
        ("anthropic/claude-unheard-of/hihg", None),  # nobody knows that this is a model
        ("anthropic/claude-sonnet-4-5/nightly", None),  # nor that this should be a level
        ("openai-compatible/gpt-5/hihg", None),  # names of a server's own are free
        ("ollama/qwen3/hihg", None),
        ("thinker/hihg", "http://127.0.0.1:9/v1"),
        ("mistral/medium-3", None),
    ],
)
def test_other_words_behind_a_slash_are_names_as_before(name, url):
    target = resolve(name, base_url=url)
    assert not target.known
    assert name.endswith(target.model)


def test_a_listed_model_may_be_called_like_a_misspelt_level():
    own = {"acme": {"env": [], "api": "https://a/v1", "models": {"one": {}, "one/hihg": {}}}}
    catalog = load([own], HEADER)
    assert named("acme/one/hihg", catalog=catalog) == ("acme", "one/hihg")
    assert named("one/hihg", catalog=catalog) == ("acme", "one/hihg")
    with pytest.raises(UnknownLevel):
        resolve("acme/one/hgih", catalog=catalog)


@pytest.mark.parametrize("name", ["", "   ", "\t"])
def test_no_name(name):
    with pytest.raises(UnknownModel, match=r"^no model given; "):
        resolve(name)


def test_a_long_name_is_shortened_in_the_message():
    for name in ("z" * 10_000, "lo/" * 5_000 + "lo", "o3/" + "9" * 10_000 + "k"):
        with pytest.raises(UnknownModel) as caught:
            resolve(name)
        assert len(str(caught.value)) < 250


def test_a_url_of_ones_own():
    target = resolve("mine/foo", base_url="http://127.0.0.1:8000/v1/")
    assert (target.provider, target.model, target.known) == ("mine", "foo", False)
    assert (target.dialect, target.endpoint) == ("openai-chat", "http://127.0.0.1:8000/v1")
    assert target.notes == (
        "'mine' is not a provider in the catalog; 'foo' is sent as the model's name",
    )
    bare = resolve("foo", base_url="http://127.0.0.1:8000/v1", dialect="anthropic")
    assert (bare.provider, bare.model, bare.dialect) == (GENERIC, "foo", "anthropic")


def test_a_makers_name_before_a_slash_belongs_to_the_model():
    target = resolve("Qwen/Qwen3-Unheard-Of", base_url="http://127.0.0.1:8000/v1")
    assert (target.provider, target.model) == (GENERIC, "Qwen/Qwen3-Unheard-Of")


def test_a_name_that_many_have_is_no_error_at_a_url_of_ones_own(small):
    target = resolve("one", catalog=small, base_url="http://127.0.0.1/v1")
    assert (target.provider, target.model, target.known) == (GENERIC, "one", False)


def test_the_generic_provider_needs_no_url():
    target = resolve("openai-compatible/a/b")
    assert (target.provider, target.model, target.known) == (GENERIC, "a/b", False)
    assert target.endpoint is None


def test_a_url_moves_a_known_model_and_keeps_its_facts():
    target = resolve("claude-sonnet-4-5", base_url="http://127.0.0.1:9/v1")
    assert (target.provider, target.dialect) == ("anthropic", "anthropic")
    assert target.endpoint == "http://127.0.0.1:9/v1"
    assert target.known


def test_who_names_a_provider_is_not_sent_to_another(small):
    target = resolve("b/seven", catalog=small)
    assert (target.provider, target.model, target.known) == ("b", "seven", False)
    assert target.notes == ("'seven' is not in the catalog (others have it: c/b/seven)",)


def test_a_url_that_a_provider_owns_says_whose_model_is_meant(small):
    assert named("one", catalog=small, base_url="https://claudia/v1") == ("claudia", "one")
    assert named("b/seven", catalog=small, base_url="https://c/v1/") == ("c", "b/seven")


def test_the_dialect_argument_goes_before_rows_and_rows_before_the_catalog(small):
    rows = [{"match": {"provider": "b"}, "dialect": "gemini", "set": {"cumulative": True}}]
    assert resolve("b/one", catalog=small).dialect == "openai-chat"
    by_row = resolve("b/one", catalog=small, compat_rows=rows)
    assert (by_row.dialect, by_row.compat.cumulative) == ("gemini", True)
    given_one = resolve("b/one", catalog=small, compat_rows=rows, dialect="anthropic")
    assert given_one.dialect == "anthropic"


def test_compat_of_one_request_has_the_last_word():
    target = resolve("kimi-k2-thinking", compat={"reasoningOut": "thinking"})
    assert target.compat.reasoning_out == "thinking"


def test_the_field_that_the_catalog_names():
    assert resolve("openrouter/moonshotai/kimi-k2-thinking").facts.returns_in is not None
    assert resolve("kimi-k2-thinking").compat.reasoning_out == "reasoning_content"


def test_what_is_not_allowed_is_refused():
    with pytest.raises(ConfigError) as caught:
        resolve("o3", dialect="soap")
    assert str(caught.value) == (
        "there is no dialect 'soap'; use one of openai-chat, openai-responses, anthropic, gemini,"
        " bedrock-converse"
    )
    with pytest.raises(ConfigError, match=r"^compat: there is no key 'x'"):
        resolve("o3", compat={"x": 1})
    with pytest.raises(ConfigError, match=r"^compat row 1: there is no key 'x'"):
        resolve("o3", compat_rows=[{"set": {"x": 1}}])


_words = st.sampled_from(
    ["anthropic", "claude", "openai", "/", "-", ".", "4.5", "latest", "thinking", "20250101", "@"]
)


@given(st.text() | st.lists(_words).map("".join), st.sampled_from([None, "http://h/v1"]))
def test_any_text_is_a_target_or_a_local_error(text, url):
    try:
        said = resolve(text, base_url=url).model
    except LocalError as error:
        said = str(error)
        lines = len(said.splitlines())
    else:
        lines = 1
    assert said
    assert 1 <= lines <= 2


def test_close_names():
    names = ["claude-sonnet-4-5", "claude-opus-4-5", "gpt-5"]
    assert close("CLAUDE-sonet", names) == ["claude-sonnet-4-5", "claude-opus-4-5"]
    assert close("gpt5", names) == ["gpt-5"]
    assert close("x", names) == []


def test_lists_in_words():
    assert [either(["a", "b", "c"][:n]) for n in (1, 2, 3)] == ["a", "a or b", "a, b or c"]
    assert listed(["a", "b"]) == "a, b"
    assert listed([*"abcdefg"]) == "a, b, c, d, e and 2 more"
