"""Starts one program in the sandbox, in a Python process of its own.

It runs before every command, so it stands alone: it imports nothing of mull and little of Python.
mull passes its compiled code together with a plan (`mull.agent.sandbox.cage`). What happens is
written to the plan's `report`, a descriptor, in lines. If anything cannot be set up, the program is
not started.

Processes: this one stays outside and watches. Its child is the first process of a namespace for
processes (PID 1), makes the namespace for files, and waits; when it ends, the kernel ends
everything below it. Its child in turn becomes the program. Without namespaces the child becomes the
program itself, and this process gets what it leaves running, to end it.
"""

from __future__ import annotations

import _signal  # type: ignore[import-not-found]
import _socket
import ctypes
import fcntl
import os
import select

TYPE_CHECKING = False  # typing takes longer to import than all the rest
if TYPE_CHECKING:
    from typing import Any

_GRACE = 1.5
"""Seconds to end after a request, less than mull gives: then this process still cleans up."""
_FAILED = 125
"""The exit status when the sandbox cannot be made."""

_X86 = os.uname().machine == "x86_64"
_CLONE, _CAPSET, _SETNS, _SECCOMP = (56, 126, 308, 317) if _X86 else (220, 91, 268, 277)
_OPEN_TREE, _MOVE_MOUNT, _FSOPEN, _FSCONFIG, _FSMOUNT = 428, 429, 430, 431, 432
_OPENAT2, _MOUNT_SETATTR = 437, 442
_LANDLOCK_CREATE, _LANDLOCK_ADD, _LANDLOCK_RESTRICT = 444, 445, 446
_SIGCHLD = 17
_AT_FDCWD = -100
_AT_EMPTY_PATH, _AT_RECURSIVE, _CLONE_TREE, _TREE_CLOEXEC = 0x1000, 0x8000, 1, 0o2000000
_RDONLY, _NOSUID, _NODEV, _NOEXEC = 1, 2, 4, 8
_PRIVATE = (1 << 18) | (1 << 14)
_RECEIVE, _SEND = 0xC0502100, 0xC0182101
_CONTINUE = 1
_EACCES, _ENETUNREACH = 13, 101
_DEVICES = ("null", "zero", "full", "random", "urandom", "tty")
_FAMILY_4, _FAMILY_6 = 2, 10
_SOCKET, _CONNECT, _SENDMMSG = (41, 198), (42, 203), (307, 269)
"""On either machine; no other call with one of these numbers is told."""
_DNS = 53
_MOST_SAID = 20

_libc = ctypes.PyDLL(None, use_errno=True)
_libc.syscall.restype = ctypes.c_long


def _call(number: int, *given: Any) -> int:
    """A system call.

    Raises:
        OSError: it failed.
    """
    words = [ctypes.c_long(one) if isinstance(one, int) else one for one in given]
    found: int = _libc.syscall(ctypes.c_long(number), *words)
    if found == -1:
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number))
    return found


def _prctl(option: int, *given: int) -> None:
    words = [ctypes.c_ulong(one) for one in (*given, 0, 0, 0, 0)[:4]]
    if _libc.prctl(option, *words) == -1:
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number))


def _mount(source: bytes, target: bytes, kind: bytes, flags: int, data: bytes = b"") -> None:
    if _libc.mount(source, target, kind, ctypes.c_ulong(flags), data or None) == -1:
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number))


# Files


def _tree(path: bytes, at: int = _AT_FDCWD, *, whole: bool = True) -> int:
    """A copy of what is mounted there, attached to nothing yet."""
    flags = _CLONE_TREE | _TREE_CLOEXEC | (_AT_RECURSIVE if whole else 0)
    return _call(_OPEN_TREE, at, path, flags)


def _place(tree: int, path: bytes) -> None:
    _call(_MOVE_MOUNT, tree, b"", _AT_FDCWD, path, 4)  # the tree is the descriptor itself
    os.close(tree)


def _read_only(tree: int, path: bytes = b"", *, whole: bool = True) -> None:
    """Make what is mounted there read-only."""
    attributes = b"".join(one.to_bytes(8, "little") for one in (_RDONLY, 0, 0, 0))
    flags = (_AT_RECURSIVE if whole else 0) | (0 if path else _AT_EMPTY_PATH)
    _call(_MOUNT_SETATTR, tree, path, flags, attributes, len(attributes))


class _Files:
    """Makes the file system that the program sees, step by step."""

    def __init__(self) -> None:
        self._kept: dict[str, int] = {}
        self._covers = -1
        self._refused: set[bytes] = set()

    def do(self, step: tuple[Any, ...]) -> None:
        getattr(self, "_" + step[0])(*step[1:])

    def _keep(self, key: str, path: bytes) -> None:
        """Remember what is there, as writable as it is now."""
        if path not in self._refused:
            self._kept[key] = _tree(path)

    def _lock(self) -> None:
        """Everything becomes read-only."""
        self._covers = self._make_covers()
        _read_only(_AT_FDCWD, b"/")

    def _put(self, key: str, path: bytes, made: str) -> None:
        """What was kept, at this path; the path is `made` if it is in a new file system."""
        if made:
            os.makedirs(path if made == "folder" else os.path.dirname(path), exist_ok=True)
        if made == "file":
            os.close(os.open(path, os.O_CREAT | os.O_WRONLY))
        if key in self._kept:
            _place(self._kept.pop(key), path)

    def _over(self, path: bytes, upper: bytes, work: bytes) -> None:
        """Changes of what is there are stored elsewhere; if that is not possible, it stays."""
        layers = b"lowerdir=%s,upperdir=%s,workdir=%s,userxattr,volatile" % (path, upper, work)
        try:
            _mount(b"overlay", path, b"overlay", _NOSUID | _NODEV, layers)
        except OSError:
            self._refused.add(path)

    def _same(self, path: bytes, is_locked: bool) -> None:
        """A mount of its own for what is there: it cannot be moved, removed or replaced."""
        try:
            tree = _tree(path)
        except FileNotFoundError:
            return  # it is gone since
        if is_locked:
            _read_only(tree)
        _place(tree, path)

    def _hide(self, path: bytes) -> None:
        """In its place is something that cannot be read."""
        if os.path.exists(path):
            name = b"folder" if os.path.isdir(path) else b"file"
            _place(_tree(name, self._covers), path)

    def _make_covers(self) -> int:
        """A folder and a file that nobody can open, on a read-only file system of their own."""
        made = _call(_FSOPEN, b"tmpfs", 1)
        _call(_FSCONFIG, made, 6, None, None, 0)
        tree = _call(_FSMOUNT, made, 1, _NOSUID | _NODEV | _NOEXEC)
        os.close(made)
        os.mkdir("folder", 0, dir_fd=tree)
        os.close(os.open("file", os.O_CREAT | os.O_WRONLY, 0, dir_fd=tree))
        _read_only(tree)
        return tree

    def _empty(self, path: bytes, mode: int) -> None:
        """An empty file system in memory."""
        _mount(b"tmpfs", path, b"tmpfs", _NOSUID | _NODEV, b"mode=%o" % mode)

    def _link(self, target: bytes, path: bytes) -> None:
        os.symlink(target, path)

    def _proc(self, may_fail: bool) -> None:
        """The processes of this namespace only."""
        try:
            _mount(b"proc", b"/proc", b"proc", _NOSUID | _NODEV | _NOEXEC | _RDONLY)
        except OSError:  # in a container parts of /proc are covered: then there is no other
            if not may_fail:
                raise

    def _dev(self) -> None:
        """The harmless devices, and terminals of its own."""
        kept = [(name, f"/dev/{name}".encode()) for name in _DEVICES]
        trees = [(path, _tree(path, whole=False)) for _, path in kept if os.path.exists(path)]
        _mount(b"tmpfs", b"/dev", b"tmpfs", _NOSUID, b"mode=755")
        for path, tree in trees:
            os.close(os.open(path, os.O_CREAT | os.O_WRONLY))
            _place(tree, path)
        for name in ("pts", "shm"):
            os.mkdir(f"/dev/{name}")
        _mount(b"devpts", b"/dev/pts", b"devpts", _NOSUID | _NOEXEC, b"newinstance,ptmxmode=0666")
        _mount(b"tmpfs", b"/dev/shm", b"tmpfs", _NOSUID | _NODEV, b"mode=1777")
        for target, name in (
            ("pts/ptmx", "ptmx"),
            ("/proc/self/fd", "fd"),
            ("/proc/self/fd/0", "stdin"),
            ("/proc/self/fd/1", "stdout"),
            ("/proc/self/fd/2", "stderr"),
        ):
            os.symlink(target, f"/dev/{name}")


def _raise_loopback() -> None:
    """The network has no other interface."""
    name = b"lo".ljust(16, b"\0")
    made = _socket.socket(_socket.AF_INET, _socket.SOCK_DGRAM)
    fcntl.ioctl(made.fileno(), 0x8914, name + (0x41).to_bytes(2, "little") + bytes(22))
    made.close()


def _drop_powers(kept: int) -> None:
    """Keep these of the powers of root inside the namespace."""
    for power in range(64):
        if not kept >> power & 1:
            try:
                _prctl(24, power)
            except OSError:
                break  # the kernel knows no more
    low, high = kept & 0xFFFFFFFF, kept >> 32
    header = (0x20080522).to_bytes(4, "little") + bytes(4)
    words = (low, low, 0, high, high, 0)
    _call(_CAPSET, header, b"".join(one.to_bytes(4, "little") for one in words))


def _landlock(handled: tuple[int, int, int], grants: list[tuple[int, bytes]]) -> None:
    """Deny everything handled that is not granted."""
    rights = b"".join(one.to_bytes(8, "little") for one in handled)
    while rights.endswith(bytes(8)) and len(rights) > 8:
        rights = rights[:-8]  # an older kernel knows fewer fields
    rules = _call(_LANDLOCK_CREATE, rights, len(rights), 0)
    words = (os.O_PATH | os.O_CLOEXEC, 0, 4)  # RESOLVE_NO_SYMLINKS
    how = b"".join(one.to_bytes(8, "little") for one in words)
    for access, path in grants:
        try:
            at = _call(_OPENAT2, _AT_FDCWD, path, how, len(how))
        except OSError:
            continue  # it is gone, or a running command has put a link there
        try:
            rule = access.to_bytes(8, "little") + at.to_bytes(4, "little")
            _call(_LANDLOCK_ADD, rules, 1, rule, 0)
        except OSError:
            if os.path.isdir(path):
                raise
        finally:
            os.close(at)
    _call(_LANDLOCK_RESTRICT, rules, 0)
    os.close(rules)


def _filter(program: bytes, *, is_watched: bool) -> int:
    """Filter system calls from here on; returns where those to watch are told, or 0."""
    code = ctypes.create_string_buffer(program, len(program))
    size = (len(program) // 8).to_bytes(8, "little")
    given = size + ctypes.addressof(code).to_bytes(8, "little")
    return _call(_SECCOMP, 1, 8 if is_watched else 0, given)


# The processes


def _main(plan: dict[str, Any], report: int, program: list[bytes]) -> int:
    for number in (1, 2, 3, 15):  # the program gets them too: this one only waits for it
        _signal.signal(number, _signal.SIG_IGN)
    if not plan["namespaces"]:
        _prctl(36, 1)  # orphans become children of this process
    ours, theirs = _socket.socketpair(_socket.AF_UNIX, _socket.SOCK_SEQPACKET)
    _join(plan["join"])
    flags = plan["namespaces"]
    child = _call(_CLONE, flags | _SIGCHLD, 0, 0, 0, 0)
    if child == 0:
        ours.close()
        try:
            _inside(plan, theirs, program)
        except BaseException as error:
            theirs.send(f"failed {_step} {error}".encode())
        finally:
            os._exit(_FAILED)
    theirs.close()
    _signal.signal(15, lambda *_: _signal.setitimer(0, _GRACE))
    _signal.signal(14, lambda *_: os.kill(child, 9))
    _write_maps(child, plan["maps"])
    os.write(report, f"inside {child}\n".encode())
    ours.send(b"go")
    return _watch(child, ours, report)


def _join(other: int) -> None:
    """Share the network of another command in the sandbox."""
    if other:
        for kind in ("user", "net"):
            at = os.open(f"/proc/{other}/ns/{kind}", os.O_RDONLY | os.O_CLOEXEC)
            _call(_SETNS, at, 0)
            os.close(at)


def _write_maps(child: int, maps: dict[str, bytes]) -> None:
    for name, text in maps.items():
        with open(f"/proc/{child}/{name}", "wb", buffering=0) as file:
            file.write(text)


_step: Any = "start"


def _inside(plan: dict[str, Any], up: Any, program: list[bytes]) -> None:
    """The first process: makes the walls, starts the program and waits for it."""
    global _step
    up.recv(16)
    os.close(plan["report"])  # the program could open it through /proc
    _prctl(1, 9)  # ends with its parent
    if plan["namespaces"]:
        _mount(b"none", b"/", b"", _PRIVATE)
        files = _Files()
        for _step in plan["files"]:
            files.do(_step)
        os.chdir(plan["folder"])
        _step = "network"
        if plan["has_loopback"]:
            _raise_loopback()
    _step = "powers"
    _drop_powers(plan["powers"])
    _prctl(38, 1)  # nothing gains privileges from here on
    _step = "landlock"
    if plan["landlock"]:
        _landlock(*plan["landlock"])
    _step = "program"
    if not plan["namespaces"]:
        _become(plan, up, program)
    child = os.fork()
    if child == 0:
        _become(plan, up, program)
    while True:
        ended, status = os.waitpid(-1, 0)
        if ended == child:
            break
    up.send(f"ended {status} {int(_has_children())}".encode())
    os._exit(0)


def _has_children() -> bool:
    try:
        while os.waitpid(-1, os.WNOHANG)[0]:
            pass
    except ChildProcessError:
        return False
    return True


def _end_children() -> bool:
    """End those that are left, and theirs; returns whether there were any."""
    found = False
    while _has_children():
        found = True
        for name in filter(str.isdigit, os.listdir("/proc")):
            try:
                with open(f"/proc/{name}/stat", "rb") as file:
                    parent = int(file.read().rpartition(b")")[2].split()[1])
                if parent == os.getpid():
                    os.kill(int(name), 9)
            except OSError:
                pass
        os.waitpid(-1, 0)
    return found


def _become(plan: dict[str, Any], up: Any, program: list[bytes]) -> None:
    """Become the program, behind the filter."""
    for number in (1, 2, 3, 13, 14, 15, 25):  # Python and we ignore some of them
        _signal.signal(number, _signal.SIG_DFL)
    told = _filter(plan["filter"], is_watched=plan["is_watched"])
    if told:
        up.sendmsg([b"watch"], [(_socket.SOL_SOCKET, 1, told.to_bytes(4, "little"))])
        os.close(told)
    try:
        os.execvpe(program[0], program, plan["environment"])
    except OSError as error:
        up.send(f"missing {error.errno}".encode())
        os._exit(127)


def _watch(child: int, inside: Any, report: int) -> int:  # noqa: PLR0912 - the events of a life
    """Wait for the end, and tell what the program tries."""
    poll, ending = select.poll(), os.pidfd_open(child)
    for at in (inside.fileno(), ending):
        poll.register(at, select.POLLIN)
    poll.register(report, 0)
    told, watcher, status = -1, None, None
    while True:
        ready = dict(poll.poll())
        if report in ready:
            os.kill(child, 9)  # mull is gone
            _end_children()
            return _FAILED
        if inside.fileno() in ready:
            data, given, _, _ = inside.recvmsg(4096, 64)
            word, _, rest = data.decode("utf-8", "replace").partition(" ")
            if word == "watch":
                told = int.from_bytes(given[0][2][:4], "little")
                watcher = _Watcher(told, report)
                poll.register(told, select.POLLIN)
            elif word == "ended":
                number, left = rest.split()
                status = int(number)
                if int(left):
                    os.write(report, b"left\n")
            elif word:
                os.write(report, data.replace(b"\n", b" ") + b"\n")
                if word == "failed":
                    return _FAILED
            else:
                poll.unregister(inside.fileno())
        elif ending in ready:
            _, own = os.waitpid(child, 0)
            _signal.signal(14, _signal.SIG_IGN)
            if _end_children():
                os.write(report, b"left\n")
            return _leave(own if status is None else status)
        if watcher and ready.get(told, 0) & select.POLLIN:
            watcher.answer()
        elif told in ready:
            poll.unregister(told)


def _leave(status: int) -> int:
    """End as the program did."""
    if os.WIFSIGNALED(status):
        number = os.WTERMSIG(status)
        if number not in (9, 19):
            _signal.signal(number, _signal.SIG_DFL)
        os.kill(os.getpid(), number)
    return os.WEXITSTATUS(status)


# What the program tries


class _Watcher:
    """Tells where the program wants to connect to. With namespaces nothing here protects: the
    kernel decides what becomes of a call. Without them, it refuses sockets.
    """

    def __init__(self, told: int, report: int) -> None:
        self._told = told
        self._report = report
        self._said: set[str] = set()

    def answer(self) -> None:
        """Answer one call that waits."""
        notice = bytearray(80)
        try:
            fcntl.ioctl(self._told, _RECEIVE, notice, True)
        except OSError:
            return  # the process is gone
        pid, number = (int.from_bytes(notice[at : at + 4], "little") for at in (8, 16))
        words = [int.from_bytes(notice[at : at + 8], "little") for at in range(32, 80, 8)]
        error, flags = 0, _CONTINUE
        try:
            error, flags = self._verdict(pid, number, words)
        except (OSError, ValueError, IndexError):  # what cannot be read cannot be told
            error, flags = (_EACCES, 0) if number in _SOCKET else (0, _CONTINUE)
        response = bytes(notice[:8]) + bytes(8) + (-error).to_bytes(4, "little", signed=True)
        try:  # noqa: SIM105 - contextlib takes time to import
            fcntl.ioctl(self._told, _SEND, response + flags.to_bytes(4, "little"))
        except OSError:
            pass

    def _verdict(self, pid: int, number: int, words: list[int]) -> tuple[int, int]:
        """The error that the call ends with, if the kernel is not to go on with it."""
        if number in _SOCKET:
            if words[0] & 0xFFFFFFFF in (_FAMILY_4, _FAMILY_6):
                self._say("socket")
            return _EACCES, 0
        memory = os.open(f"/proc/{pid}/mem", os.O_RDONLY | os.O_CLOEXEC)
        try:
            if number in _SENDMMSG:
                return self._asks_name(memory, *_first_buffer(memory, words[1]))
            at, size = (words[1], words[2]) if number in _CONNECT else (words[4], words[5])
            address = os.pread(memory, min(size & 0xFFFF, 28), at)
            family, port = int.from_bytes(address[:2], "little"), address[2:4]
            if family not in (_FAMILY_4, _FAMILY_6):
                return 0, _CONTINUE
            host = address[4:8] if family == _FAMILY_4 else address[8:24]
            if int.from_bytes(port, "big") == _DNS:
                if number in _CONNECT:
                    self._say("resolver")
                    return 0, 0  # as if there were one: then it says which name it wants
                return self._asks_name(memory, words[1], words[2])
            if not _is_heard(pid, host, port):
                self._say(f"address {host.hex()} {int.from_bytes(port, 'big')}")
            return 0, _CONTINUE
        finally:
            os.close(memory)

    def _asks_name(self, memory: int, at: int, size: int) -> tuple[int, int]:
        """The name in a question to a name server."""
        question = os.pread(memory, min(size, 512), at)
        labels: list[str] = []
        place = 12
        while question[place]:
            label = question[place + 1 : place + 1 + question[place]]
            if not label.replace(b"-", b"").replace(b"_", b"").isalnum() or len(labels) > 20:
                return 0, _CONTINUE  # it is something else
            labels.append(label.decode("ascii"))
            place += 1 + len(label)
        self._say(f"name {'.'.join(labels)}")
        return _ENETUNREACH, 0

    def _say(self, text: str) -> None:
        if text not in self._said and len(self._said) < _MOST_SAID:
            self._said.add(text)
            os.write(self._report, f"{text}\n".encode())


def _first_buffer(memory: int, at: int) -> tuple[int, int]:
    """Where the first message of several is, and its size."""
    vector = int.from_bytes(os.pread(memory, 8, at + 16), "little")
    found = os.pread(memory, 16, vector)
    return int.from_bytes(found[:8], "little"), int.from_bytes(found[8:], "little")


def _is_heard(pid: int, host: bytes, port: bytes) -> bool:
    """Whether something inside listens there."""
    is_own = host[0] == 127 if len(host) == 4 else host == bytes(15) + b"\1"
    if not is_own and not host.startswith(bytes(10) + b"\xff\xff\x7f"):
        return False
    wanted = f":{port.hex().upper()} "
    for kind in ("tcp", "tcp6", "udp", "udp6"):
        try:
            with open(f"/proc/{pid}/net/{kind}") as file:
                if any(wanted in line[:45] for line in file):
                    return True
        except OSError:
            pass
    return False


def run(plan: dict[str, Any]) -> None:
    """Start the program of the plan; never returns."""
    report = plan["report"]
    os.set_inheritable(report, False)
    status = _FAILED
    try:
        status = _main(plan, report, plan["program"])
    except BaseException as error:
        os.write(report, f"failed outside {error}\n".encode())
    os._exit(status)
