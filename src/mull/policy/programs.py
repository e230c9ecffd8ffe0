"""Words of command lines that are known to be harmless, by program.

A line of `TABLE` is `PROGRAM | OPTIONS | OPERANDS`. One that starts with spaces continues the one
before, and one that starts with `=` names the source of those below it, all read on 2026-11-18. A
program may have subcommands (`git diff`), or be known only with certain words (`command -v`).

With a `!` in front, it runs code or obeys a config of the project, changes something, or uses the
network: it never runs unasked, and the line says only what a star in a rule may stand for.

Options: `-abc` are three flags, `--long` is one, and `-#` is a number (`head -5`). `-n=i` has a
value of the kind `i`, attached or as the next word; `-U?=i` has one only if it is attached;
`--arg=w,w` has two. After `exact`, `-abc` is one word, and `--` is not known. An option that is not
listed is not known to be harmless, and neither is an abbreviation. Marks behind an option: `!` it
takes the place of the first operand; `.` folders are read whole, without operands this one; `^`
hidden files are read too; `&` it may have operands.

Kinds of values and operands, besides those in `KINDS`; `*` is any number of them, `?` at most one,
with no option after it: it could be taken for a file that is written to.

f  a file that is read                        g  a revision, or a path that is read
a  a file, or all of a folder, that is read   n  the name of a remote, and no path here
v  a file or what is not hidden in a folder   k  a revision, or a path that is not read
o  a file, and no folder                      t  a test, `FILE::NAME`
p  a path that is not read                    r  a path, or all of a folder, that may be written to
d  a folder that the program goes to          c  a command, from here on
l  a file, or all of a folder with what links in it lead to, that is read
m  the same; all of the working folder may be read with it
x  any words, also with dashes                {a,b}  one of these words
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from functools import cache
from types import MappingProxyType

from mull.neutral.blocks import Value
from mull.neutral.patterns import pattern

__all__ = ["ALIASES", "KINDS", "Option", "Row", "rows"]

# a backslash takes the next character with it, also one that would end the pattern
_SED_PLACE = r"(?:\d+(?:~\d+)?|\$|/(?:\\.|[^/\[\\\n])*/I?)"
_SED = pattern(
    rf"(?:(?:{_SED_PLACE}(?:, ?(?:{_SED_PLACE}|[+~]\d+))? ?!? ?)?(?:[pdqQ=lnNPDgGhHxF]"
    r"|s([/|,#:@])(?:\\.|(?!\1)[^\[\\\n])*\1(?:\\.|(?!\1)[^\\\n])*\1[gpiIm\d]*)? ?(?:;|$) ?)+"
)
_NUMBER = pattern(r"[+-]?[\d.,]+[a-zA-Z%]*")
_REF = pattern(r"\w[\w/-]*(?:\.[\w/-]+)*")
_TARGET = pattern(r"\w[\w./%-]*")
_PRINTF_N = pattern(r"%[^a-zA-Z%]*[hjlLqtz]*n")
_NOT_IN_AWK = pattern(
    r"@|getline|system|ARG[VC]|ENVIRON|SYMTAB|FUNCTAB|PROCINFO|\\\n|(?<!\|)\|(?!\|)"
    r"|\b(?!(?:length|substr|split|g?sub|match|index|tolower|toupper|sprintf|printf?|int|if|for"
    r"|while)\b)[A-Za-z_]\w*\s*\("
)
_SIGNED = pattern(r"%[-+ ]?G|signature")
_NOT_IN_JQ = pattern(r"\b(?:import|include|env|modulemeta|get_search_list|ENV|__prog\w*)\b")


def _is_awk(script: str) -> bool:
    """Whether an awk script only prints: after `print`, a `>` is a redirection."""
    printed = script.partition("print")[2].replace(">=", "")
    return _NOT_IN_AWK.search(script) is None and ">" not in printed


KINDS: Mapping[str, Callable[[str], object]] = MappingProxyType(
    {
        "i": lambda word: _NUMBER.fullmatch(word),
        "w": lambda word: True,
        "sed": lambda script: _SED.fullmatch(script),
        "awk": _is_awk,
        "jq": lambda script: _NOT_IN_JQ.search(script) is None,
        "date": lambda word: word.startswith("+"),
        "printf": lambda word: not word.startswith("-") and not _PRINTF_N.search(word),
        "test": lambda word: word not in ("-v", "-R"),  # they evaluate subscripts
        "format": lambda word: not _SIGNED.search(word),  # they run gpg
        "ref": lambda word: _REF.fullmatch(word),
        "target": lambda word: _TARGET.fullmatch(word),
    }
)
"""Kinds of words that are told by their look; the others lead to files."""

_MACROS = {
    "@diff": """
        -pusabwRzWc -U?=i -M?=w -C?=w -B?=w -S=w -G=w -I=w -l=i --patch --no-patch --unified?=i
        --raw --stat?=w --numstat --shortstat --dirstat?=w --summary --name-only
        --compact-summary --name-status --color?=w --no-color --color-words?=w --word-diff?=w
        --color-moved?=w --minimal --patience --histogram --diff-algorithm=w --no-renames
        --find-renames?=w --find-copies?=w --diff-filter=w --pickaxe-all --pickaxe-regex
        --ignore-space-at-eol --ignore-space-change --ignore-all-space --ignore-blank-lines
        --function-context --exit-code --quiet --check --full-index --abbrev?=i --relative?=w
        --text --no-prefix --no-ext-diff --no-textconv --ignore-submodules?=w --cc
        --inter-hunk-context=i
    """,
    "@log": """-n=i -# -iEFPg --oneline --graph --decorate?=w --no-decorate --all --branches?=w
        --tags?=w --remotes?=w --first-parent --merges --no-merges --reverse --follow --author=w
        --committer=w --grep=w --since=w --until=w --after=w --before=w --max-count=i --skip=i
        --invert-grep --all-match --format=format --pretty?=format --abbrev-commit --date=w
        --topo-order --date-order --simplify-by-decoration --full-history --left-right --cherry
        --cherry-pick --cherry-mark --left-only --right-only --boundary --parents --no-walk?=w
        --walk-reflogs --count --ancestry-path""",
    "@listed": """--contains=k --no-contains=k --merged=k --no-merged=k --points-at=k --sort=w
        --format=format --column?=w --no-column --color?=w""",
}

TABLE = """
= GNU coreutils 9.1, manual pages
ls | -aAbBcCdfFgGhHiklmnNopqQrRsStuUvxXZ1 -I=w -T=i -w=i --all --almost-all --color?=w --directory
    --classify --file-type --format=w --full-time --group-directories-first --human-readable --si
    --hide=w --ignore=w --inode --reverse --recursive --size --sort=w --time=w --time-style=w | p*
cat | -AbeEnstTuv --number --number-nonblank --show-all --show-ends --show-tabs --squeeze-blank | f*
head | -qvz -# -c=i -n=i --lines=i --bytes=i --quiet --silent --verbose | f*
tail | -qvz -# -c=i -n=i --lines=i --bytes=i --quiet --silent --verbose | f*
wc | -cmlLw --bytes --chars --lines --words --max-line-length | f*
tac | -br -s=w | f*
nl | -p -b=w -d=w -f=w -h=w -i=i -l=i -n=w -s=w -v=i -w=i | f*
sort | -bcCdfghiMmnRrsuVz -k=w -t=w -S=w --key=w --field-separator=w --reverse --unique --stable
    --numeric-sort --version-sort --human-numeric-sort --general-numeric-sort --month-sort
    --ignore-case --ignore-leading-blanks --dictionary-order --random-sort --check --merge --debug
    --zero-terminated --parallel=i | f*
uniq | -cdDiuz -f=i -s=i -w=i --count --repeated --unique --ignore-case --skip-fields=i
    --skip-chars=i --check-chars=i --zero-terminated | f?
cut | -nsz -b=w -c=w -d=w -f=w --bytes=w --characters=w --delimiter=w --fields=w --complement
    --only-delimited --output-delimiter=w --zero-terminated | f*
tr | -cCdst --complement --delete --squeeze-repeats --truncate-set1 | w*
paste | -sz -d=w --delimiters=w --serial | f*
join | -iz -a=i -e=w -j=i -o=w -t=w -v=i -1=i -2=i --header | f*
comm | -123z --total --output-delimiter=w | f*
fold | -bs -w=i --width=i --spaces | f*
fmt | -cstu -w=i -p=w -g=i | f*
expand, unexpand | -ai -t=w --initial --tabs=w | f*
od | -abcdfiloxsv -A=w -j=i -N=i -t=w -w?=i | f*
base64, base32 | -di -w=i --decode --wrap=i | f*
md5sum, sha1sum, sha224sum, sha256sum, sha384sum, sha512sum, b2sum | -btz --binary --text --tag | f*
cksum | -a=w | f*
sum | -rs | f*
stat | -fLt -c=w --format=w --printf=w --terse --file-system --dereference | p*
du | -0abchHklmPsSx -B=w -d=i -t=w --all --apparent-size --bytes --total --max-depth=i --si
    --human-readable --summarize --exclude=w | p*
df | -ahHiklPT -B=w -t=w -x=w --human-readable --inodes --local --print-type --total | p*
basename | -az -s=w --multiple --suffix=w --zero | w*
dirname | -z --zero | w*
realpath | -emLPqsz --relative-to=p --relative-base=p --canonicalize-existing | p*
readlink | -femnqsvz --canonicalize | p*
date | -uR -I?=w -d=w -r=p --utc --date=w --iso-8601?=w --rfc-3339=w --rfc-email --reference=p
    | date*
seq | -w -f=w -s=w | i*
sleep | | i*
uname | -asnrvmpio --all |
nproc | --all --ignore=i |
id | -GgnruzZ | w*
whoami, logname, arch, tty, hostname, groups, users | |
pwd | -LP |
timeout | -v -k=w -s=w --foreground --preserve-status --kill-after=w --signal=w | i c
nice | -# -n=i --adjustment=i | c
stdbuf | -i=w -o=w -e=w --input=w --output=w --error=w | c
= bash 5.2, manual page
echo, true, false, : | | x*
printf | | printf w*
test, [ | | test*
type | -aftpP | w*
command -v, command -V | | w*
which | -a | w*
= GNU grep 3.8, diffutils 3.8, findutils 4.9, sed 4.9, gawk 5.2.1 and mawk 1.3.4, manual pages
grep, egrep, fgrep | -abcEFGhHiIlLnoPqsTUvwxyzZ -# -r. -A=i -B=i -C=i -m=i -e!=w -f!=f
    --after-context=i --before-context=i --context=i --color?=w --colour?=w --count
    --extended-regexp --fixed-strings --perl-regexp --recursive. --regexp!=w --file!=f
    --files-with-matches --files-without-match --ignore-case --no-ignore-case --include=w
    --exclude=w --exclude-dir=w --invert-match --line-number --line-regexp --max-count=i
    --no-filename --no-messages --only-matching --quiet --silent --text --with-filename
    --word-regexp | w f*
diff | -abBcdeEinNpqsTtuwyZ -U=i -C=i -W=i -I=w -F=w -L=w --brief --unified?=i --context?=i
    --color?=w --side-by-side --suppress-common-lines --width=i --strip-trailing-cr --label=w
    --normal --minimal --text --ignore-case --ignore-space-change --ignore-all-space
    --ignore-blank-lines --ignore-tab-expansion --report-identical-files | o*
cmp | -bls -i=w -n=i --bytes=i --print-bytes --silent --quiet --verbose | o o w*
find | exact -maxdepth=i -mindepth=i -name=w -iname=w -path=w -ipath=w -wholename=w -regex=w
    -iregex=w -regextype=w -type=w -xtype=w -size=w -empty -mtime=w -mmin=w -atime=w -amin=w
    -ctime=w -cmin=w -newer=p -newermt=w -perm=w -user=w -group=w -links=w -inum=w -readable
    -writable -executable -not -a -and -o -or ! ( ) , -print -print0 -printf=w -ls -prune -quit
    -depth -mount -xdev -true -false -daystart -samefile=p -lname=w -ilname=w -P | p*
sed | -nErsuz -e!=sed --quiet --silent --regexp-extended --expression!=sed --line-length=i
    --separate --null-data --unbuffered --posix | sed f*
awk | -F=w -v=w | awk f*
= ripgrep 13.0, fd 8.6, tree 2.1, jq 1.6, file 5.44, manual pages
rg | -abcFHiIlnNopPqsSUvwx0 -u^ -A=i -B=i -C=i -d=i -E=w -e!=w -f!=f -g^=w -j=i -m=i -M=i -r=w -t^=w
    -T=w --after-context=i --before-context=i --byte-offset --case-sensitive --color=w --colors=w
    --column --no-column --context=i --count --count-matches --crlf --encoding=w --file!=f --files!
    --files-with-matches --files-without-match --fixed-strings --glob^=w --iglob^=w --heading
    --no-heading --hidden^ --ignore-case --ignore-file^=f --invert-match --json --line-number
    --no-line-number --line-regexp --max-columns=i --max-count=i --max-depth=i --max-filesize=w
    --multiline --multiline-dotall --no-config --no-filename --no-ignore --no-ignore-vcs
    --no-messages --null --one-file-system --only-matching --passthru --pcre2 --pretty --quiet
    --regexp!=w --replace=w --smart-case --sort=w --sortr=w --stats --text --threads=i --trim
    --type^=w --type-not=w --type-list! --unrestricted^ --vimgrep --with-filename
    --word-regexp | w v*.
fd | -HIusiFgap01q -d=i -t=w -e=w -E=w -S=w -c=w -j=i --hidden --no-ignore --no-ignore-vcs
    --unrestricted --case-sensitive --ignore-case --fixed-strings --glob --regex --absolute-path
    --full-path --print0 --quiet --prune --max-depth=i --min-depth=i --exact-depth=i --type=w
    --extension=w --exclude=w --size=w --color=w --max-results=i --changed-within=w
    --changed-before=w --strip-cwd-prefix --one-file-system | w p*
tree | exact -a -d -f -i -s -u -g -h -D -F -q -N -Q -r -t -U -c -v -A -C -S -n -p -x -J -X -L=i -P=w
    -I=w --gitignore --dirsfirst --noreport --charset=w
    --du --si --prune --matchdirs --ignore-case --inodes --filelimit=i --sort=w --timefmt=w | p*
jq | -acCejMnrRsS --ascii-output --compact-output --color-output --exit-status --join-output
    --monochrome-output --null-input --raw-output --raw-input --slurp --sort-keys --tab --stream
    --seq --indent=i --arg=w,w --argjson=w,w --slurpfile=w,f --rawfile=w,f | jq f*
file | -bhiknNrL0 -F=w -e=w --brief --mime --mime-type --mime-encoding --dereference | f*
= util-linux 2.38, binutils 2.40, xxd 2022-01-14, procps 4.0, manual pages
column | -tex -c=i -s=w -o=w -N=w -R=w --table --separator=w --output-separator=w
    --table-columns=w --json | f*
rev | | f*
hexdump | -bcCdovx -n=i -s=i -e=w | f*
strings | -afw -# -n=i -t=w -e=w | f*
xxd | exact -a -b -e -i -p -ps -u -c=i -g=i -l=i -s=i | f?
free | -bkmghltvw --human --total |
uptime | -ps --pretty --since |
= git 2.39, manual pages
git | -P -C=d --no-pager --no-optional-locks --literal-pathspecs |
git --version, git version | |
git status | -sbz -u?=w --short --branch --show-stash --porcelain?=w --long
    --untracked-files?=w --ignored?=w --ignore-submodules?=w --column?=w --no-column
    --ahead-behind --no-ahead-behind --renames --no-renames --find-renames?=w | p*
git diff | @diff --cached --staged --merge-base | g*
git log, git reflog show | @diff @log | g*
git reflog | @log |
git rev-list | @log | k*
git show | @diff @log | g*
git blame | -bceflnpstw -L=w -M?=i -C?=i --date=w --since=w --porcelain --line-porcelain --root
    --incremental --abbrev?=i --show-stats --show-name --show-number --show-email | g*
git branch | -arvi --list& --all --remotes --verbose --show-current --abbrev?=i @listed | w*
git tag | -i -n?=i -l& --list& @listed | w*
git remote | -v --verbose |
git remote get-url | --all --push | ref
git rev-parse | -q --quiet --verify --short?=i --abbrev-ref?=w --symbolic-full-name --all
    --show-toplevel --show-prefix --show-cdup --git-dir --absolute-git-dir --git-common-dir
    --is-inside-work-tree --is-bare-repository --branches?=w --tags?=w | k*
git ls-files | -cdikmostuvz -x=w --cached --deleted --modified --others --ignored --stage
    --unmerged --exclude-standard --exclude=w --error-unmatch --full-name --directory --eol | k*
git ls-tree | -rdtlz --name-only --name-status --full-name --full-tree --long --abbrev?=i | k*
git cat-file | -ptse | g*
git describe | --tags --always --all --long --abbrev?=i --match=w --exclude=w --contains
    --exact-match --first-parent --dirty?=w | k*
git shortlog | @log -snec --summary --numbered --email --committer | k*
git merge-base | -a --all --is-ancestor --fork-point --octopus --independent | k*
git stash list | @log |
git stash show | @diff | g*
git worktree list | -vz --verbose --porcelain |
git grep | -abcEFGhHiIlLnopPqvwWz -A=i -B=i -C=i -e!=w --and --or --not --all-match --break
    --heading --cached --color?=w --no-color --column --count --context=i --extended-regexp
    --files-with-matches --files-without-match --fixed-strings --ignore-case --line-number
    --max-depth=i --only-matching --perl-regexp --quiet --show-function --word-regexp | w g*
git for-each-ref | --count=i --format=format --sort=w --points-at=k --merged=k --contains=k | w*
git show-ref | -dsq --heads --tags --head --verify --quiet --hash?=i | w*
git symbolic-ref | -q --quiet --short | ref?
git name-rev | --name-only --tags --always --all | k*
git check-ignore | -qvn --quiet --verbose --non-matching | p*
git count-objects | -vH --verbose --human-readable |
!git add | -AuvnN --all --update --verbose --dry-run --intent-to-add | p*
!git commit | -aqs -m=w --all --quiet --signoff --message=w --allow-empty | p*
!git fetch | -pqvt --prune --tags --all --quiet --verbose --depth=i | n ref*
!git pull | -qv --rebase --ff-only --no-rebase --quiet --verbose | n ref*
!git push | -uqvn --set-upstream --quiet --verbose --dry-run | n ref*
!git switch | -q -c=ref --create=ref --detach --quiet | ref*
= ruff 0.17.5, mypy 2.4.1, pytest 9.2, black 23.1, their --help; pip 24, uv 0.9, their documentation
ruff check --isolated --no-cache | -qve --select=w --ignore=w --extend-select=w --statistics
    --output-format=w --exit-zero --target-version=w --line-length=i --preview --no-fix | l*.
!ruff check | -qvens --select=w --ignore=w --extend-select=w --statistics --show-files --no-fix
    --no-cache --isolated --output-format=w --exit-zero --target-version=w --line-length=i
    --preview --diff --quiet --verbose | r*.
!ruff format | -qv --check --diff --no-cache --isolated --quiet --line-length=i | r*.
mypy --config-file= --cache-dir=/dev/null | -v --strict --no-error-summary
    --ignore-missing-imports --follow-imports=w --python-version=w --no-color-output | m*
!mypy | -v -p=w -m=w --strict --pretty --no-error-summary --ignore-missing-imports
    --follow-imports=w --python-version=w --platform=w --no-incremental --no-color-output
    --show-error-codes --warn-unreachable | r*
!pytest | -xqvsl -k=w -m=w -n=w -r=w --tb=w --maxfail=i --lf --ff --nf --sw --last-failed
    --failed-first --exitfirst --no-header --no-summary --durations=i --co --collect-only --quiet
    --verbose --capture=w --color=w --showlocals --no-cov --cov?=w --timeout=i --deselect=t
    --ignore=r --strict-markers --disable-warnings | t*
!black | -qvC -l=i -t=w -S --check --diff --color --quiet --verbose --line-length=i | r*
!python -m | | c
!python | exact -u -B | r*
python --version, python -V, node --version, node -v, make --version, gcc --version | |
!pip list, !pip freeze, !pip check | -l --local --outdated --format=w |
!pip show | -f --files | w*
!uv run, !poetry run, !pipenv run, !pdm run, !hatch run, !rye run, !conda run | | c
!uv pip list, !uv pip freeze, !uv tree | |
= npm 9, TypeScript 4.8 and ESLint 8.5, their --help; Jest 29, Vitest 3, Prettier 3, documentation
!npm test, !npm t | -s --silent |
!npm test --, !npm run -- | | r*
!npm run | -s --silent | w r*
!npm ci, !npm ls, !npm outdated | -s --silent --all --depth=i |
!npx, !bunx, !npm exec, !yarn exec, !bundle exec, !bun x | | c
!eslint | --quiet --max-warnings=i --ext=w --color --no-color | r*
!prettier | -cl --check --list-different | r*
!tsc | exact --noEmit --pretty --skipLibCheck --strict -v --version --listFiles |
!jest | -iob -t=w --testNamePattern=w --ci --verbose --silent --bail --runInBand --listTests | r*
!vitest run | -t=w --testNamePattern=w --silent --bail=i | r*
= Cargo 1.9x and Go 1.19 documentation, GNU make 4.3, Docker 29 and kubectl 1.36 --help
!cargo build, !cargo check, !cargo clippy, !cargo bench, !cargo doc | -qvr -j=i -p=w --release
    --workspace --all --all-targets --all-features --no-default-features --features=w --package=w
    --lib --bins --bin=w --tests --test=w --examples --example=w --locked --offline --quiet |
!cargo test | -qvr -j=i -p=w --release --workspace --all --all-targets --all-features --no-run
    --no-default-features --features=w --package=w --lib --bins --bin=w --tests --test=w --doc
    --locked --offline --no-fail-fast --quiet | w*
!cargo test -- | -q --nocapture --test-threads=i --exact --ignored --include-ignored --list
    --show-output --skip=w | w*
!cargo fmt | -qv --check --all |
!cargo tree, !cargo metadata | -p=w --depth=i --no-deps --format-version=i --locked --offline |
!go build, !go vet, !go test | exact -v -race -short -cover -failfast -json -benchmem -run=w
    -count=i -timeout=w -bench=w -p=i -parallel=i -tags=w -list=w | r*
!go list | exact -m -json -deps -e -test | r*
!make | -kswB -j?=i -l?=i --no-print-directory --silent --keep-going --always-make | target*
!docker ps, !docker container ls, !docker images, !docker image ls | -aqls -n=i -f=w --all --quiet
    --no-trunc --format=w --filter=w |
!docker logs, !docker inspect | -t -n=w --tail=w --since=w --until=w --timestamps --format=w | w*
!docker version, !docker info, !docker compose ps | -aq --all --quiet |
!kubectl get, !kubectl describe, !kubectl top, !kubectl explain, !kubectl api-resources |
    -A -L=w -n=w -l=w -o={wide,yaml,json,name} --namespace=w --all-namespaces --selector=w
    --output={wide,yaml,json,name} --show-labels --no-headers --sort-by=w | w*
!kubectl logs | -p -n=w -c=w -l=w --namespace=w --container=w --tail=i --since=w --previous
    --timestamps | w*
!kubectl version, !kubectl cluster-info | --client |
"""

ALIASES: Mapping[str, str] = MappingProxyType(
    {
        "fdfind": "fd", "gawk": "awk", "mawk": "awk", "nawk": "awk", "gfind": "find",
        "ggrep": "grep", "gls": "ls", "gsed": "sed", "gsort": "sort", "gmake": "make",
        "nodejs": "node", "pip3": "pip", "pnpm": "npm", "yarn": "npm", "podman": "docker",
        "py.test": "pytest", "python3": "python",
    }
)  # fmt: skip
"""Other names of programs; `python3.12` is python too."""


class Option(Value, frozen=True):
    """The kinds of an option's values, whether they must be attached, and its marks."""

    values: tuple[str, ...] = ()
    attached: bool = False
    marks: str = ""


class Row(Value, frozen=True):
    """What is known of one program or subcommand: a line of `TABLE`."""

    name: str
    """The words of the command line that it is about, such as `git diff`."""
    options: Mapping[str, Option]
    """The options known to be harmless, as they are written: `-n`, `--long`."""
    operands: tuple[str, ...]
    """The kinds of its operands, in order, as the docstring of the module lists them."""
    repeats: bool
    """Whether the last operand may occur any number of times."""
    ends_options: bool
    """Whether what follows its first operand is an operand too, even with a dash before it."""
    is_exact: bool
    """Whether `-abc` is one option rather than three flags."""
    is_asked: bool
    """Whether it never runs unasked: it runs code, changes something, or uses the network."""
    reads_folder: bool
    """Whether it reads the whole working folder if it has no operands."""
    source: str
    """Where its options are documented."""


_OPTION = pattern(r"(-#|--?[^=?!.^&]+)([?!.^&]*)(?:=(.+))?")


@cache
def rows() -> Mapping[str, Row]:
    """The table, by program or subcommand."""
    return MappingProxyType({row.name: row for row in _read(TABLE)})


def _read(table: str) -> Iterator[Row]:
    source = ""
    for line in table.strip().replace("\n    ", " ").splitlines():
        if line.startswith("="):
            source = line[1:].strip()
            continue
        names, options, operands = (part.strip() for part in line.split(" |"))
        words = " ".join(_MACROS.get(word, word) for word in options.split()).split()
        is_exact = "exact" in words
        known = dict(_options(words, is_exact))
        kinds = operands.split()
        last = kinds[-1] if kinds else ""
        for name in names.split(", "):
            yield Row(
                name.removeprefix("!"),
                MappingProxyType(known),
                tuple(kind.rstrip("*?.") for kind in kinds),
                "*" in last,
                last.endswith("?"),
                is_exact,
                name.startswith("!"),
                last.endswith("."),
                source,
            )


def _options(words: list[str], is_exact: bool) -> Iterator[tuple[str, Option]]:
    for word in words:
        found = _OPTION.fullmatch(word)
        if found is None:  # `(` and `!` of find
            yield word, Option()
            continue
        name, marks, kinds = found.groups()
        values = tuple(kinds.split(",")) if kinds and kinds[0] != "{" else (kinds,) if kinds else ()
        option = Option(values, "?" in marks, marks.replace("?", ""))
        if is_exact or name.startswith("--") or len(name) == 2:
            yield name, option
        else:
            yield from ((f"-{letter}", option) for letter in name[1:])
