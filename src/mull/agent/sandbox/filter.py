"""The filter of system calls behind which a command runs, as a program for the kernel (seccomp).

It closes ways around the other walls: new namespaces and mounts, other processes, kernel keyrings,
sockets of families that no namespace separates, and interfaces that act without a system call of
their own (io_uring). Calls that say where a command wants to connect to are told to the process
that watches it, if it is watched.

Numbers are from the kernel's tables (arch/x86/entry/syscalls/syscall_64.tbl and
scripts/syscall.tbl, Linux 6.18).
"""

from __future__ import annotations

import struct
from collections.abc import Iterable
from typing import Literal

__all__ = ["MACHINES", "filter_program"]

MACHINES = {"x86_64": (0, 0xC000003E), "aarch64": (1, 0xC00000B7)}
"""The machines whose system calls are known: their column below, and the kernel's name for them."""

_DENIED: dict[str, tuple[int | None, int | None]] = {
    # other processes, and their memory
    "ptrace": (101, 117),
    "process_vm_readv": (310, 270),
    "process_vm_writev": (311, 271),
    "kcmp": (312, 272),
    "pidfd_getfd": (438, 438),
    "process_madvise": (440, 440),
    # namespaces and mounts
    "unshare": (272, 97),
    "setns": (308, 268),
    "mount": (165, 40),
    "umount2": (166, 39),
    "pivot_root": (155, 41),
    "chroot": (161, 51),
    "open_tree": (428, 428),
    "move_mount": (429, 429),
    "fsopen": (430, 430),
    "fsconfig": (431, 431),
    "fsmount": (432, 432),
    "fspick": (433, 433),
    "mount_setattr": (442, 442),
    "open_tree_attr": (467, 467),
    # files without a path
    "name_to_handle_at": (303, 264),
    "open_by_handle_at": (304, 265),
    "fanotify_init": (300, 262),
    # keyrings
    "add_key": (248, 217),
    "request_key": (249, 218),
    "keyctl": (250, 219),
    # large interfaces to the kernel
    "bpf": (321, 280),
    "perf_event_open": (298, 241),
    "userfaultfd": (323, 282),
    "lookup_dcookie": (212, 18),
    "uselib": (134, None),
    "nfsservctl": (180, 42),
    # the machine
    "init_module": (175, 105),
    "finit_module": (313, 273),
    "delete_module": (176, 106),
    "kexec_load": (246, 104),
    "kexec_file_load": (320, 294),
    "reboot": (169, 142),
    "swapon": (167, 224),
    "swapoff": (168, 225),
    "acct": (163, 89),
    "quotactl": (179, 60),
    "quotactl_fd": (443, 443),
    "syslog": (103, 116),
    "settimeofday": (164, 170),
    "clock_settime": (227, 112),
    "adjtimex": (159, 171),
    "clock_adjtime": (305, 266),
    "sethostname": (170, 161),
    "setdomainname": (171, 162),
    "iopl": (172, None),
    "ioperm": (173, None),
    "vhangup": (153, 58),
}
_ABSENT = {
    "io_uring_setup": (425, 425),
    "io_uring_enter": (426, 426),
    "io_uring_register": (427, 427),
    "clone3": (435, 435),  # its flags are in memory, which a filter cannot see: libraries use clone
}
_CLONE, _SOCKET, _IOCTL = (56, 220), (41, 198), (16, 29)
_CONNECT, _SENDTO, _SENDMMSG = (42, 203), (44, 206), (307, 269)
_SOCKETPAIR, _PRLIMIT = (53, 199), (302, 261)
_JOINED = tuple(kind | flags for kind in (1, 5) for flags in (0, 0x800, 0x80000, 0x80800))
"""SOCK_STREAM and SOCK_SEQPACKET, whose pairs stay together: a datagram can still go elsewhere."""

_EPERM, _EACCES, _ENOSYS = 1, 13, 38
_ALLOW, _TELL, _ERROR, _KILL = 0x7FFF0000, 0x7FC00000, 0x00050000, 0x80000000
_LOAD, _EQUAL, _ABOVE, _ANY, _RETURN = 0x20, 0x15, 0x35, 0x45, 0x06
_NEW_NAMESPACES = 0x7E020000
"""CLONE_NEWNS, NEWCGROUP, NEWUTS, NEWIPC, NEWUSER, NEWPID and NEWNET."""
_TYPED = (0x5412, 0x541C)
"""TIOCSTI and TIOCLINUX: they type into a terminal."""
_X32 = 0x40000000


def filter_program(
    machine: str, families: Iterable[int], *, told: Literal["connects", "sockets", "nothing"]
) -> bytes:
    """The program. Sockets can be made of these families only.

    What is `told` to the process that watches: calls that connect, or attempts to make other
    sockets, which it has to refuse. Without namespaces (`sockets`) no pair of sockets leads
    elsewhere, and no limits of other processes can be set.

    Raises:
        KeyError: the system calls of this machine are not known.
    """
    column, architecture = MACHINES[machine]
    code = [_line(_LOAD, 4), _line(_EQUAL, architecture, 1, 0), _line(_RETURN, _KILL)]
    code.append(_line(_LOAD, 0))
    if machine == "x86_64":
        code += [_line(_ABOVE, _X32, 0, 1), _line(_RETURN, _ERROR | _ENOSYS)]
    for table, error in ((_DENIED, _EPERM), (_ABSENT, _ENOSYS)):
        for numbers in table.values():
            if (number := numbers[column]) is not None:
                code += _when(number, [_line(_RETURN, _ERROR | error)])
    code += _when(_CLONE[column], _argument(0, _ANY, [_NEW_NAMESPACES], _ERROR | _EPERM, _ALLOW))
    code += _when(_IOCTL[column], _argument(1, _EQUAL, _TYPED, _ERROR | _EPERM, _ALLOW))
    refused = _TELL if told == "sockets" else _ERROR | _EACCES
    code += _when(_SOCKET[column], _argument(0, _EQUAL, families, _ALLOW, refused))
    if told == "sockets":
        code += _when(_SOCKETPAIR[column], _argument(1, _EQUAL, _JOINED, _ALLOW, _ERROR | _EACCES))
        code += _when(_PRLIMIT[column], _argument(0, _EQUAL, [0], _ALLOW, _ERROR | _EPERM))
    if told == "connects":
        code += _when(_CONNECT[column], [_line(_RETURN, _TELL)])
        code += _when(_SENDMMSG[column], [_line(_RETURN, _TELL)])
        # an address makes it one of those that say where they go
        code += _when(_SENDTO[column], _argument(4, _EQUAL, [0], _ALLOW, _TELL))
    code.append(_line(_RETURN, _ALLOW))
    return b"".join(code)


def _line(code: int, value: int, true: int = 0, false: int = 0) -> bytes:
    return struct.pack("<HBBI", code, true, false, value)


def _when(number: int, code: list[bytes]) -> list[bytes]:
    """This code for this call; it has to return."""
    return [_line(_EQUAL, number, 0, len(code)), *code]


def _argument(which: int, test: int, values: Iterable[int], yes: int, no: int) -> list[bytes]:
    """One of two ends, by the lower half of an argument."""
    lines = [_line(_LOAD, 16 + 8 * which)]
    for value in values:
        lines += [_line(test, value, 0, 1), _line(_RETURN, yes)]
    return [*lines, _line(_RETURN, no)]
