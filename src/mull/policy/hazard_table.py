"""Options that write files or run programs, by program: data for `mull.policy.hazards`."""

from __future__ import annotations

from types import MappingProxyType

__all__ = [
    "ALIASES",
    "CARRIERS",
    "DOCKER_ACTS",
    "GIT_ACTS",
    "HANDING_ON",
    "KUBECTL_ACTS",
    "READERS",
    "RUNNERS",
    "SED_SCRIPT",
    "TABLE",
    "USUAL",
    "USUAL_LETTERS",
]

RUNNERS = frozenset(
    """! bash builtin busybox chronic chroot command coproc dash do doas elif else env eval exec
    fish flock if ionice ksh nice nohup parallel setsid sh source ssh stdbuf strace sudo su then
    time timeout unshare until watch while uvx vi vim view nvim emacs nano ed ex
    bunx npx pipx xargs zsh
    """.split()
)
"""Programs and words that run what follows them."""

_SED_PLACE = r"(?:\d+(?:~\d+)?|/[^/\[]*/I?)"
SED_SCRIPT = (
    rf"(?:(?:{_SED_PLACE}(?:, ?(?:{_SED_PLACE}|[+~]\d+))? ?! ?|{_SED_PLACE}(?:, ?(?:{_SED_PLACE}"
    rf"|[+~]\d+))? ?)?(?:[pdqQ=lnNPDgGhHxF]|s([/|,#:@])(?:(?!\1)[^\[])*\1(?:(?!\1).)*\1[gpiIm\d]*"
    r")? ?(?:;|$) ?)+"
)
"""Commands of sed that only print: none of them writes a file or runs anything."""

TABLE = """
ack | | pager ackrc |
ag | | pager |
awk | fiElodp | file include exec load dump-variables profile pretty-print debug |
bat | | pager map-syntax |
black | cW | config |
bundle | | gemfile path |
cargo | CZ | config manifest-path target-dir out-dir artifact-dir fix root |
curl | oOJTdFKcDEwXQC | output output-dir remote-name remote-name-all remote-header-name
    upload-file data data-ascii data-binary data-raw data-urlencode json form form-string config
    cookie-jar dump-header trace trace-ascii trace-config stderr libcurl etag-save hsts alt-svc
    engine cert key netrc-file write-out request quote create-dirs continue-at url-query
    unix-socket abstract-unix-socket | -w
date | s | set |
docker | | config volume mount privileged |
eslint | co | config rulesdir resolve-plugins-relative-to plugin parser output-file fix
    fix-dry-run cache-location cache-file format init |
fd | xX | exec exec-batch |
file | Cm | compile magic-file |
find | | | -exec -execdir -ok -okdir -delete -fprint -fprint0 -fprintf -fls -files0-from
git | | output no-index ext-diff textconv exec upload-pack receive-pack open-files-in-pager
    contents extcmd template pathspec-from-file separate-git-dir file | -c -C -p --paginate
    --exec-path --git-dir --work-tree --namespace --config-env --super-prefix
git archive | o | remote |
git branch | | edit-description |
git clean | fxXd | force |
git clone | uco | config reference |
git commit | Ft | |
git diff | | |
git fetch | u | |
git format-patch | o | output-directory |
git grep | Of | |
git ls-remote | uo | |
git push | fo | force delete mirror prune |
git rebase | xi | interactive |
git tag | F | |
go | | | -C -exec -o -toolexec -modfile -overlay -coverprofile -cpuprofile -memprofile
    -blockprofile -mutexprofile -trace -outputdir -vettool -ldflags -gcflags -asmflags
    -gccgoflags -pkgdir -modcacherw -test.coverprofile -test.outputdir -fix -w
gofmt | wr | | -cpuprofile
jq | fL | from-file |
less | oOkT | log-file LOG-FILE lesskey-file lesskey-src tag-file |
kubectl | f | filename kubeconfig as token raw |
make | fCIEWo | file makefile directory include-dir eval what-if old-file |
man | PHCM | pager html config-file manpath browser |
mypy | | config-file python-executable install-types cache-dir html-report txt-report xml-report
    any-exprs-report cobertura-xml-report linecount-report linecoverage-report
    lineprecision-report xslt-html-report xslt-txt-report junit-xml shadow-file
    custom-typeshed-dir custom-typing-module |
node | eprcC | eval print require import loader experimental-loader env-file inspect inspect-brk
    diagnostic-dir cpu-prof-dir heap-prof-dir redirect-warnings report-directory
    trace-event-file-pattern build-snapshot test-reporter test-reporter-destination run |
npm | Cc | prefix script-shell shell call userconfig globalconfig node-options cache git
    init-module ignore-scripts editor viewer global |
pandoc | oFLHABcd | output filter lua-filter pdf-engine template defaults extract-media data-dir
    log include-in-header |
perl | eEiMmIxsd | |
php | rBREFSadzc | run process-begin process-code process-end process-file define |
pip | rectC | requirement constraint editable target prefix root index-url extra-index-url
    find-links log cache-dir python config-settings global-option build-option report |
prettier | | write config plugin plugin-search-dir cache-location config-path ignore-path |
pytest | cop | config-file override-ini rootdir confcutdir basetemp junitxml junit-xml log-file
    debug pdb pdbcls pastebin cov-config cov-report import-mode trace report-log html resultlog
    ignore-glob-file |
python | cmiX | check-hash-based-pycs |
rg | | pre pre-glob hostname-bin config |
rsync | eTf | rsh rsync-path delete remove-source-files backup-dir partial-dir temp-dir log-file
    write-batch only-write-batch files-from compare-dest copy-dest link-dest filter config
    daemon sockopts |
ruby | eriIxsS | |
ruff | o | config output-file fix fix-only unsafe-fixes add-noqa cache-dir extension |
scp | oSFDJ | |
sed | ife | in-place file expression |
shuf | o | output random-source |
sort | oT | output compress-program temporary-directory files0-from random-source |
sqlite3 | | cmd init | -cmd -init
tar | xcruAIFCKXTgPUfV | extract get create append update catenate concatenate delete to-command
    use-compress-program checkpoint-action info-script new-volume-script rsh-command rmt-command
    directory file files-from exclude-from listed-incremental index-file absolute-names
    unlink-first overwrite recursive-unlink transform xform strip-components |
tree | oR | output fromfile |
tsc | pb | project build outDir outFile declarationDir plugins watch |
uniq | | |
unzip | dopPx | |
uv | | config-file directory project python index-url default-index find-links env-file
    cache-dir with with-editable with-requirements script module |
wget | OoaPiexNrmK | output-document output-file append-output directory-prefix input-file
    execute config use-askpass post-file body-file post-data method save-cookies load-cookies
    warc-file recursive mirror ca-certificate certificate private-key use-server-timestamps
    rejected-log hsts-file delete-after convert-links |
xmllint | o | output shell load-trace dtdvalid |
xxd | r | revert | -r -revert
yarn | | cwd script-shell use-yarnrc modules-folder cache-folder |
yq | i | inplace in-place split-exp split-exp-file from-file front-matter |
zip | TmdFUob | unzip-command temp-path move delete test | -TT
"""
"""A program or a subcommand, letters of short options, long options without their dashes, and words
that stand for themselves. A line that starts with spaces continues the one before.
"""
ALIASES = MappingProxyType(
    {
        "gawk": "awk",
        "mawk": "awk",
        "nawk": "awk",
        "original-awk": "awk",
        "batcat": "bat",
        "bsdtar": "tar",
        "egrep": "grep",
        "fdfind": "fd",
        "fgrep": "grep",
        "gfind": "find",
        "gmake": "make",
        "gsed": "sed",
        "gsort": "sort",
        "gtar": "tar",
        "gwget": "wget",
        "more": "less",
        "nodejs": "node",
        "pip3": "pip",
        "pnpm": "npm",
        "podman": "docker",
        "py.test": "pytest",
        "pypy3": "python",
        "python3": "python",
    }
)
GIT_ACTS = frozenset(
    """bisect config credential cvsserver daemon difftool filter-branch fast-import
    fsmonitor--daemon gc gui help hook instaweb maintenance mergetool p4 quiltimport
    rebase remote-ext request-pull send-email shell submodule svn upload-pack web--browse worktree
    """.split()
)
"""Subcommands that run what is configured, or configure what runs."""
DOCKER_ACTS = frozenset("build buildx commit compose cp create exec import load run".split())
KUBECTL_ACTS = frozenset("apply attach cp create debug delete edit exec patch replace run".split())
CARRIERS: MappingProxyType[str, tuple[str, ...]] = MappingProxyType(
    {
        "bun": ("run", "x"),
        "bundle": ("exec",),
        "conda": ("run",),
        "deno": ("run", "eval"),
        "docker": ("exec", "run"),
        "hatch": ("run",),
        "kubectl": ("exec", "run"),
        "mise": ("exec", "x"),
        "nix": ("run", "shell", "develop"),
        "npm": ("exec", "x", "dlx"),
        "pdm": ("run",),
        "pipenv": ("run",),
        "pipx": ("run",),
        "poetry": ("run",),
        "python": ("-m",),
        "rye": ("run",),
        "uv": ("run",),
        "yarn": ("exec", "dlx"),
    }
)
"""Subcommands that run what follows them."""
HANDING_ON = ("bundle", "cargo", "go", "npm", "npx", "uv", "yarn")
"""Programs that pass on what follows `--`."""
USUAL = frozenset(
    """command config delete directory editor eval exec execute file filter fix hook hooks import
    include init inplace load log2file out outdir outfile output overwrite pager path place plugin
    plugins pre prefix program reporter require rcfile root rsh run save script shell target upload
    write
    """.split()
)
"""Parts of the names of long options that write or execute, for programs not listed."""
USUAL_LETTERS = "oce"
READERS = frozenset(
    """basename cat cksum cmp column comm cut df diff dirname du echo expand false fmt fold grep
    head hexdump id join ls md5sum nl od paste printf ps pwd readlink realpath rev seq sha1sum
    sha256sum sha512sum stat strings sum tac tail test tr true tsort type uname wc which who whoami
    """.split()
)
"""Programs without options that write or execute."""
