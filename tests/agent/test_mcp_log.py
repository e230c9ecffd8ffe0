"""A server's log: bounded, whole lines, without secrets; that it cannot be written harms nobody."""

from mull.agent.mcp.log import ServerLog


def test_lines_come_whole_and_without_secrets(tmp_path):
    log = ServerLog(tmp_path / "data" / "logs" / "a.log", ["s3cret-token"])
    log.feed(b"first\nwith s3cret")
    log.feed(b"-token\n\nlast \xff \x1b[31mred")
    log.close()
    assert log.path.read_text() == "first\nwith ***\nlast \ufffd \x1b[31mred\n"
    assert log.last_line == "last \ufffd  [31mred"
    assert log.path.stat().st_mode & 0o777 == 0o600
    for folder in (log.path.parent, tmp_path / "data"):
        assert folder.stat().st_mode & 0o777 == 0o700


def test_the_file_never_grows_beyond_its_bound(tmp_path):
    log = ServerLog(tmp_path / "a.log", most=1000)
    for number in range(1000):
        log.feed(b"line %d\n" % number)
    log.close()
    old = tmp_path / "a.log.old"
    assert sorted(tmp_path.iterdir()) == [log.path, old]
    assert max(log.path.stat().st_size, old.stat().st_size) <= 1000
    assert log.path.read_text().endswith("line 999\n")
    assert old.read_text().splitlines()[-1:] != []


def test_a_later_log_goes_on_with_the_file_and_its_size(tmp_path):
    for word in (b"one", b"two"):
        log = ServerLog(tmp_path / "a.log", most=6)
        log.feed(word + b"\n")
        log.feed(word + b"\n")
        log.close()
    assert (tmp_path / "a.log").read_text() == "two\n"


def test_a_line_without_end_is_left_out_and_counted(tmp_path):
    log = ServerLog(tmp_path / "a.log")
    for _ in range(100):
        log.feed(b"x" * 1000)
    log.feed(b"\nafter\n")
    log.close()
    assert log.path.read_text() == "[a line of 100,000 bytes, left out]\nafter\n"


def test_a_log_that_cannot_be_written_is_done_without(tmp_path):
    (tmp_path / "file").write_text("")
    log = ServerLog(tmp_path / "file" / "a.log")
    log.feed(b"words\n")
    log.close()
    assert log.last_line == "words"
