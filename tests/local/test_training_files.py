"""The adapter's file: what is written can be read back, tensor by tensor."""

from __future__ import annotations

import pytest

np = pytest.importorskip("numpy", reason="only who trains has NumPy")

from training import gguf  # noqa: E402 - it needs NumPy


def test_an_adapter_read_back_is_the_one_written(tmp_path):
    rng = np.random.default_rng(0)
    pairs = {
        f"blk.{at}.attn_q.weight": (
            rng.standard_normal((16, 64)).astype(np.float16),
            rng.standard_normal((96, 16)).astype(np.float16),
        )
        for at in range(2)
    }
    path = tmp_path / "adapter.gguf"
    gguf.write_adapter(path, pairs, alpha=32.0, about={"general.name": "ours"})
    fields = gguf.read_fields(path)
    assert fields["general.type"] == "adapter"
    assert fields["adapter.type"] == "lora"
    assert fields["adapter.lora.alpha"] == 32.0
    assert fields["general.name"] == "ours"
    found = gguf.read_tensors(path)
    assert len(found) == 4
    for name, (a, b) in pairs.items():
        assert (found[f"{name}.lora_a"] == a).all()
        assert (found[f"{name}.lora_b"] == b).all()


@pytest.mark.parametrize("data", [b"", b"GGUF\x02\0\0\0" + b"\0" * 16, b"PK\x03\x04" + b"\0" * 20])
def test_another_file_is_refused(tmp_path, data):
    path = tmp_path / "other.gguf"
    path.write_bytes(data)
    with pytest.raises(ValueError, match="not a GGUF file of version 3"):
        gguf.read_fields(path)


def test_blocks_of_four_bits(tmp_path):
    """A block of Q4_1: scale, least value, 32 values of four bits, the low halves first."""
    halves = np.array([0.5, -1.0], np.float16).tobytes()
    packed = bytes((15 - low) << 4 | low for low in range(16))
    values = gguf._dequantised(np.frombuffer(halves + packed, np.uint8), 3).ravel()
    wanted = [0.5 * n - 1.0 for n in (*range(16), *range(15, -1, -1))]
    assert values.tolist() == wanted
