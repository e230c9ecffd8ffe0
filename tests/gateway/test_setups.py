"""What is printed to point a client at the gateway is what the client reads."""

from __future__ import annotations

import json
import subprocess
import sys
import tomllib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from effort import tried
from mull.gateway.setups import HOME, NO_TOKEN, SETUPS, TOKEN_VARIABLE, Reach, setup_lines

URL = "http://127.0.0.1:8484"
PLAIN = Reach(URL, "kimi", 262_144)
GUARDED = PLAIN._replace(token=f"${TOKEN_VARIABLE}")
SHELL = ("claude-code", "gemini-cli", "qwen-code", "opencode", "kimi-code", "aider", "goose")
BY_FILE = ("codex", "pi", "cline", "continue")
BY_HAND = ("zed", "vscode", "cursor")
PYTHON = ("openai", "anthropic", "google-genai")
PRINT_ENVIRON = "import json, os; print(json.dumps(dict(os.environ)))"

names = st.text(
    st.characters(exclude_categories=("Cs", "Cc", "Zs", "Zl", "Zp"), exclude_characters=":?#"),
    min_size=1,
    max_size=20,
)


def exported(name: str, reach: Reach) -> dict[str, str]:
    """The variables that a shell has after it has read the lines."""
    *lines, program = setup_lines(SETUPS[name], reach)
    assert program.split()[0] == SETUPS[name].program
    script = "\n".join([*lines, f"exec {sys.executable} -c '{PRINT_ENVIRON}'"])
    environ = {TOKEN_VARIABLE: "secret", "ANTHROPIC_API_KEY": "own"}
    shell = ["sh", "-e", "-c", script]
    return json.loads(subprocess.run(shell, env=environ, check=True, stdout=subprocess.PIPE).stdout)


@pytest.mark.parametrize("name", SHELL)
def test_a_shell_that_reads_the_lines_has_the_variables_of_a_run(name):
    environ = exported(name, PLAIN)
    wiring = SETUPS[name].wire(PLAIN)
    given = {key: value for key, value in wiring.variables.items() if HOME not in value}
    assert given.items() <= environ.items()
    assert not environ.keys() & {*wiring.removed}


@pytest.mark.parametrize("name", SHELL)
def test_a_token_comes_from_its_variable(name):
    assert "secret" not in "\n".join(setup_lines(SETUPS[name], GUARDED))
    environ = exported(name, GUARDED)
    wired = SETUPS[name].wire(GUARDED._replace(token="secret")).variables
    given = {key: value for key, value in wired.items() if HOME not in value}
    assert {key: environ[key] for key in given} == given


@pytest.mark.parametrize("name", [name for name, setup in SETUPS.items() if setup.program])
def test_no_token_is_on_a_command_line_or_in_a_file(name):
    wiring = SETUPS[name].wire(PLAIN._replace(token="tok-1"))
    assert "tok-1" not in " ".join((*wiring.arguments, *wiring.files.values()))
    assert "tok-1" in wiring.variables.values()


@given(names)
@tried(0.3)
def test_codex_reads_the_lines_as_the_arguments_of_a_run(name):
    reach = Reach(URL, name, 1000, token="secret")
    wiring = SETUPS["codex"].wire(reach)
    read = tomllib.loads("\n".join(setup_lines(SETUPS["codex"], reach)))
    assert read == tomllib.loads("\n".join(word for word in wiring.arguments if word != "-c"))
    assert read["model"] == name
    assert read["model_context_window"] == 1000
    provider = read["model_providers"]["mull"]
    assert provider["base_url"] == f"{URL}/v1"
    assert wiring.variables[provider["env_key"]] == "secret"


def test_without_tokens_codex_needs_no_variable():
    read = tomllib.loads("\n".join(setup_lines(SETUPS["codex"], PLAIN)))
    assert "env_key" not in read["model_providers"]["mull"]
    # but its user's own lines for another gateway may name it, and a run is merged into them
    assert SETUPS["codex"].wire(PLAIN).variables == {TOKEN_VARIABLE: NO_TOKEN}


@pytest.mark.parametrize("cloud", ["BEDROCK", "VERTEX", "FOUNDRY", "MANTLE", "ANTHROPIC_AWS"])
def test_claude_code_uses_the_gateway_also_where_it_is_set_to_use_a_cloud(cloud):
    wiring = SETUPS["claude-code"].wire(PLAIN)
    settings = json.loads(wiring.arguments[wiring.arguments.index("--settings") + 1])
    assert f"CLAUDE_CODE_USE_{cloud}" in wiring.removed
    assert settings["env"][f"CLAUDE_CODE_USE_{cloud}"] == "0"


def test_qwen_code_is_told_the_window_where_it_is_known():
    wiring = SETUPS["qwen-code"].wire(PLAIN)
    assert wiring.variables["QWEN_CODE_SYSTEM_DEFAULTS_PATH"] == f"{HOME}/defaults.json"
    defaults = json.loads(wiring.files["defaults.json"])
    assert defaults == {"model": {"generationConfig": {"contextWindowSize": 262_144}}}
    assert wiring.files["defaults.json"] in setup_lines(SETUPS["qwen-code"], PLAIN)[0]
    assert not SETUPS["qwen-code"].wire(Reach(URL, "kimi")).files


@given(names)
@tried(0.3)
def test_opencode_has_a_provider_with_the_model_and_its_window(name):
    variables = SETUPS["opencode"].wire(Reach(URL, name, 50_000)).variables
    config = json.loads(variables["OPENCODE_CONFIG_CONTENT"])
    model = config["provider"]["mull"]["models"][name]
    assert config["model"] == f"mull/{name}"
    assert model["limit"]["context"] == 50_000


@pytest.mark.parametrize(
    ("window", "output", "answer", "summarizes"),
    [
        (None, None, None, True),
        (None, 8192, "8192", True),
        (200_000, None, None, True),
        (200_000, 64_000, "64000", True),
        (65_536, None, "16384", True),
        (32_768, None, "8192", False),  # its summaries would begin at 11,576 tokens
        (32_768, 32_768, "8192", False),
        (8192, 1024, "1024", False),
    ],
)
def test_claude_code_has_room_in_a_small_window(window, output, answer, summarizes):
    variables = SETUPS["claude-code"].wire(Reach(URL, "kimi", window, output)).variables
    assert variables.get("CLAUDE_CODE_MAX_CONTEXT_TOKENS") == (window and str(window))
    assert variables.get("CLAUDE_CODE_MAX_OUTPUT_TOKENS") == answer
    assert ("DISABLE_AUTO_COMPACT" not in variables) == summarizes


@pytest.mark.parametrize("reach", [PLAIN, GUARDED])
@pytest.mark.parametrize("name", PYTHON)
def test_the_lines_of_a_library_are_a_program(name, reach):
    text = "\n".join(setup_lines(SETUPS[name], reach))
    compile(text, name, "exec")
    assert URL in text
    assert ("MULL_TOKEN" in text) == (reach is GUARDED)


def test_every_program_can_be_wired():
    assert {name for name, one in SETUPS.items() if one.program} == {*SHELL, *BY_FILE}
    assert {name for name, one in SETUPS.items() if not one.program} == {*PYTHON, *BY_HAND}
    for setup in SETUPS.values():
        assert (setup.program is None) == (setup.wire is None)
        assert setup.lines or setup.wire


@pytest.mark.parametrize("reach", [PLAIN, GUARDED])
@pytest.mark.parametrize("name", [*BY_FILE, *BY_HAND])
def test_what_is_pasted_has_the_address_and_the_model_and_no_token(name, reach):
    text = "\n".join(setup_lines(SETUPS[name], reach._replace(token=reach.token and "tok-1")))
    assert URL in text
    assert "kimi" in text
    assert "tok-1" not in text
    assert (TOKEN_VARIABLE in text) == (reach is GUARDED)


def pasted(name: str, reach: Reach):
    """The settings in the lines, without the comments."""
    lines = setup_lines(SETUPS[name], reach)
    return json.loads("\n".join(line for line in lines if not line.startswith(("//", "#"))))


def test_editors_get_the_window():
    small = PLAIN._replace(window=40_960)
    zed = pasted("zed", small)["language_models"]["openai_compatible"]["mull"]
    assert zed["available_models"][0]["max_tokens"] == 40_960
    (code,) = pasted("vscode", small)[0]["models"]
    assert code["maxInputTokens"] + code["maxOutputTokens"] == 40_960
    assert code["maxOutputTokens"] == 10_240
    (cn,) = pasted("continue", small)["models"]
    assert cn["defaultCompletionOptions"] == {"contextLength": 40_960, "maxTokens": 10_240}


@given(names)
@tried(0.3)
def test_files_of_clients_hold_any_name_and_the_window(name):
    reach = Reach(URL, name, 40_960)
    aider = json.loads(SETUPS["aider"].wire(reach).files["models.json"])
    assert aider[f"openai/{name}"]["max_input_tokens"] == 40_960
    cline = json.loads(SETUPS["cline"].wire(reach).files["settings/providers.json"])
    settings = cline["providers"]["openai-compatible"]["settings"]
    assert (settings["model"], settings["contextWindow"]) == (name, 40_960)
    (model,) = json.loads(SETUPS["continue"].wire(reach).files["config.yaml"])["models"]
    assert model["model"] == name
    extension = SETUPS["pi"].wire(reach).files["mull.js"]
    assert json.dumps(name) in extension
    assert '"contextWindow": 40960' in extension


BUNDLED = {
    "models": [
        {"slug": "new", "tool_mode": "code_mode_only", "base_instructions": "Write code."},
        {
            "slug": "gpt-5.5",
            "base_instructions": "You are Codex, a coding agent based on GPT-5. Help.",
            "model_messages": {"instructions_template": "x"},
            "context_window": 272_000,
            "max_context_window": 272_000,
            "shell_type": "unified_exec",
            "default_reasoning_level": "medium",
        },
    ]
}


def codex_entry(**given):
    reach = Reach(URL, "kimi", told=json.dumps(BUNDLED))._replace(**given)
    wiring = SETUPS["codex"].wire(reach)
    (path,) = [word for word in wiring.arguments if word.startswith("model_catalog_json=")]
    assert path == f'model_catalog_json="{HOME}/models.json"'
    (entry,) = json.loads(wiring.files["models.json"])["models"]
    return entry


def test_codex_gets_a_catalog_with_the_model_made_from_its_own():
    entry = codex_entry(window=1_000_000)
    assert (entry["slug"], entry["shell_type"]) == ("kimi", "unified_exec")
    assert entry["context_window"] == entry["max_context_window"] == 1_000_000
    assert entry["base_instructions"] == "You are Codex, a coding agent. Help."
    assert "model_messages" not in entry  # they would replace the instructions
    assert entry["default_reasoning_level"] is None  # the model's own level applies
    assert codex_entry()["context_window"] == 272_000


@pytest.mark.parametrize("told", ["", "no", "{}", '{"models": []}', '{"models": [1]}', "[]"])
def test_a_codex_that_prints_no_catalog_runs_without(told):
    wiring = SETUPS["codex"].wire(Reach(URL, "kimi", 1000, told=told))
    assert not wiring.files
    assert "model_catalog_json" not in " ".join(wiring.arguments)
