"""Files that control mull, a shell, an editor, git or another program that executes what they say.

Changing one of them decides what runs later, or what a model is told. So a rule allows that only if
it names them: `write(**)` matches none of them, `write(.github/**)` matches that folder.
"""

from __future__ import annotations

import unicodedata

from mull.policy.globs import text_matches, text_matches_any

__all__ = ["folded", "is_protected", "names_protected"]

_NAMES = tuple(
    """
    .git .gitconfig .gitattributes .gitmodules .githooks .husky .lefthook* lefthook*.y*ml
    .pre-commit-config.y*ml .hg .hgrc .svn .jj
    .mull agents.md agents.override.md claude.md claude.local.md gemini.md .claude .codex .cursor
    .cursorrules .gemini .windsurf .windsurfrules .clinerules .aider* .continue .mcp.json
    .bash* .profile .zsh* .zprofile .zlog* .ksh* .mksh* .csh* .tcsh* .login .logout .inputrc
    .x*rc .xprofile .xsession* .pam_environment .xonsh* .shrc .hushlogin
    .env* .direnv .mise* mise.toml .tool-versions .netrc .curlrc .wgetrc .pgpass .psqlrc .my.cnf
    .ssh .gnupg .aws .azure .kube .docker .gem .m2 .gradle .cargo .config .local .systemd
    .npmrc .yarn .yarnrc* .pnp.* .pypirc .pip .pdbrc .pythonrc* .pythonstartup .irbrc .pryrc
    .rprofile .perldb .gdbinit .lldbinit .screenrc .tmux* .hammerspoon .crontab authorized_keys
    sitecustomize.py usercustomize.py *.pth
    .vscode .vscode-server .idea .fleet .zed .nova .vim* .gvimrc .nvim* .exrc .emacs*
    .dir-locals*.el .editorconfig .ipython .jupyter .devcontainer .devcontainer.json
    .github .gitlab .gitlab-ci* .circleci .travis.y*ml .drone.y*ml .woodpecker* .forgejo .gitea
    .buildkite .jenkins* jenkinsfile azure-pipelines*.y*ml bitbucket-pipelines.y*ml
    """.split()
)
"""Names of files and folders, in lower case."""


def is_protected(path: str) -> bool:
    """Whether the path is one of them, or inside one."""
    return any(_fits(name) for name in _parts(path))


def names_protected(pattern: str, path: str) -> bool:
    """Whether the pattern of a rule names every protected part of the path."""
    named = [part for part in _parts(pattern) if _fits(part)]
    return all(
        any(text_matches(name, part) for name in named) for part in _parts(path) if _fits(part)
    )


def _fits(name: str) -> bool:
    return text_matches_any(_NAMES, name)


def _parts(path: str) -> list[str]:
    return folded(path).split("/")


def folded(path: str) -> str:
    """The path as a file system may interpret it: some ignore case, invisible characters, and the
    difference between forms of a letter.
    """
    if path.isascii():
        return path.lower()
    seen = "".join(char for char in path if unicodedata.category(char) != "Cf")
    return unicodedata.normalize("NFKC", seen).lower()
