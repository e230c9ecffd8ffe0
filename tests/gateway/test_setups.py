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
from mull.gateway.setups import SETUPS, TOKEN_VARIABLE, Reach, setup_lines

URL = "http://127.0.0.1:8484"
PLAIN = Reach(URL, "kimi", 262_144)
GUARDED = PLAIN._replace(token=f"${TOKEN_VARIABLE}")
SHELL = ("claude-code", "gemini-cli", "qwen-code", "opencode", "kimi-code")
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
    assert wiring.variables.items() <= environ.items()
    assert not environ.keys() & {*wiring.removed}


@pytest.mark.parametrize("name", SHELL)
def test_a_token_comes_from_its_variable(name):
    assert "secret" not in "\n".join(setup_lines(SETUPS[name], GUARDED))
    environ = exported(name, GUARDED)
    given = SETUPS[name].wire(GUARDED._replace(token="secret")).variables
    assert {key: environ[key] for key in given} == {**given}


@pytest.mark.parametrize("name", [name for name, setup in SETUPS.items() if setup.program])
def test_no_token_is_on_a_command_line(name):
    wiring = SETUPS[name].wire(PLAIN._replace(token="secret"))
    assert "secret" not in " ".join(wiring.arguments)
    assert "secret" in wiring.variables.values()


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
    assert {name for name, one in SETUPS.items() if one.program} == {*SHELL, "codex"}
    for setup in SETUPS.values():
        assert (setup.program is None) == (setup.wire is None)
        assert setup.lines or setup.wire
