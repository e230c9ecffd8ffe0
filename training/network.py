"""The model in PyTorch, with the adapter's matrices beside its own.

The weights keep the layout that they have in the GGUF file, rotary pairs next to each other, so
that what is trained fits the tensors of that file as it is.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any, TypeAlias

import torch
from torch import Tensor, nn
from torch.nn import functional

__all__ = ["Adapted", "Cache", "Llama", "Shape"]

Shape: TypeAlias = tuple[int, int]
"""Rows and tokens in each: sequences of about the same length, filled up behind."""
Cache: TypeAlias = tuple[Tensor, Tensor]
"""Keys and values of one layer, by row, head and place."""


class Adapted(nn.Module):
    """A frozen matrix W and a trained product of low rank beside it."""

    weight: Tensor

    def __init__(self, weight: Tensor, rank: int, scale: float) -> None:
        super().__init__()
        self.register_buffer("weight", weight, persistent=False)
        out, into = weight.shape
        self.a = nn.Parameter(torch.randn(rank, into) / math.sqrt(into))
        self.b = nn.Parameter(torch.zeros(out, rank))
        self.scale = scale
        self.is_merged = False

    def merge(self) -> None:
        """Add the product to the matrix."""
        product = (self.b.data.float() @ self.a.data.float()) * self.scale
        self.weight = (self.weight.float() + product).to(self.weight.dtype)
        self.is_merged = True

    def forward(self, x: Tensor) -> Tensor:
        """W x + scale B A x."""
        own: Tensor = functional.linear(x, self.weight)
        if self.is_merged:
            return own
        low = functional.linear(x, self.a.to(x.dtype))
        return own + functional.linear(low, self.b.to(x.dtype)) * self.scale


class _Layer(nn.Module):
    def __init__(self, weights: Mapping[str, Tensor], at: int, fields: Mapping[str, Any],
                 rank: int, scale: float) -> None:  # fmt: skip
        super().__init__()
        self.heads = fields["llama.attention.head_count"]
        self.kv_heads = fields["llama.attention.head_count_kv"]
        self.epsilon = fields["llama.attention.layer_norm_rms_epsilon"]
        for name in ("attn_q", "attn_k", "attn_v", "attn_output", "ffn_gate", "ffn_up", "ffn_down"):
            setattr(self, name, Adapted(weights[f"blk.{at}.{name}.weight"], rank, scale))
        for name in ("attn_norm", "ffn_norm"):
            self.register_buffer(name, weights[f"blk.{at}.{name}.weight"], persistent=False)

    def forward(self, x: Tensor, turn: tuple[Tensor, Tensor], groups: list[Shape]) -> Tensor:
        """All tokens in a row; only attention looks at the groups that they stand in."""
        q, k, v = self._attended(x, turn)
        mixed, at = [], 0
        for rows, length in groups:
            parts = [one[at : at + rows * length] for one in (q, k, v)]
            at += rows * length
            heads = [one.view(rows, length, -1, one.shape[-1]).transpose(1, 2) for one in parts]
            seen = functional.scaled_dot_product_attention(*heads, is_causal=True)
            mixed.append(seen.transpose(1, 2).reshape(rows * length, -1))
        return self._fed(x + self.attn_output(torch.cat(mixed)))

    def step(self, x: Tensor, turn: tuple[Tensor, Tensor], cache: Cache, mask: Tensor) -> Tensor:
        """The tokens of (batch, length) that follow what the cache holds; they are put into it."""
        batch, length, _ = x.shape
        q, k, v = (
            one.view(batch, length, self.heads, -1).transpose(1, 2)
            for one in self._attended(x.flatten(0, 1), turn)
        )
        keys, values = cache
        end = mask.shape[-1]
        keys[:, :, end - length : end], values[:, :, end - length : end] = k, v
        seen = functional.scaled_dot_product_attention(
            q, keys[:, :, :end], values[:, :, :end], attn_mask=mask
        )
        mixed = seen.transpose(1, 2).reshape(batch * length, -1)
        return self._fed(x.flatten(0, 1) + self.attn_output(mixed)).view_as(x)

    def _attended(self, x: Tensor, turn: tuple[Tensor, Tensor]) -> tuple[Tensor, Tensor, Tensor]:
        """Queries, keys and values of each token and head."""
        seen = functional.rms_norm(x, (x.shape[-1],), self.attn_norm, self.epsilon)
        q = self.attn_q(seen).view(len(x), self.heads, -1)
        k = self.attn_k(seen).view(len(x), self.kv_heads, -1)
        v = self.attn_v(seen).view(len(x), self.kv_heads, -1)
        shared = self.heads // self.kv_heads
        k, v = (one.repeat_interleave(shared, 1) for one in (_rotated(k, turn), v))
        return _rotated(q, turn), k, v

    def _fed(self, x: Tensor) -> Tensor:
        seen = functional.rms_norm(x, (x.shape[-1],), self.ffn_norm, self.epsilon)
        inner = functional.silu(self.ffn_gate(seen)) * self.ffn_up(seen)
        return x + self.ffn_down(inner)


def _rotated(x: Tensor, turn: tuple[Tensor, Tensor]) -> Tensor:
    cosine, sine = turn
    pairs = x.unflatten(-1, (-1, 2))
    left, right = pairs[..., 0], pairs[..., 1]
    return torch.stack((left * cosine - right * sine, left * sine + right * cosine), -1).flatten(-2)


class Llama(nn.Module):
    """A Llama as GGUF describes it, its output tied to its embeddings."""

    def __init__(
        self, weights: Mapping[str, Tensor], fields: Mapping[str, Any], *, rank: int, alpha: float
    ) -> None:
        super().__init__()
        self.register_buffer("embedding", weights["token_embd.weight"], persistent=False)
        self.register_buffer("norm", weights["output_norm.weight"], persistent=False)
        self.epsilon = fields["llama.attention.layer_norm_rms_epsilon"]
        self.rotary = fields["llama.rope.dimension_count"]
        self.base = fields["llama.rope.freq_base"]
        scale = alpha / rank
        self.layers = nn.ModuleList(
            _Layer(weights, at, fields, rank, scale) for at in range(fields["llama.block_count"])
        )

    def forward(self, tokens: Tensor, groups: list[Shape]) -> Tensor:
        """What the last layer holds for each token of the groups, one behind the other, normed."""
        places = [torch.arange(n, device=tokens.device).repeat(rows) for rows, n in groups]
        turn = self.turn(torch.cat(places))
        x = functional.embedding(tokens, self.embedding)
        for layer in self.layers:
            x = layer(x, turn, groups)
        return self._normed(x)

    def turn(self, places: Tensor) -> tuple[Tensor, Tensor]:
        """How the pairs of a head are rotated at each place, the same for all heads."""
        speeds = self.base ** (-torch.arange(0, self.rotary, 2, device=places.device) / self.rotary)
        angles = torch.outer(places, speeds).unsqueeze(1)
        kind = self.embedding.dtype
        return angles.cos().to(kind), angles.sin().to(kind)

    def step(self, tokens: Tensor, caches: list[Cache], mask: Tensor) -> Tensor:
        """The scores after the last of the tokens of (batch, length); the caches grow by them."""
        batch, length = tokens.shape
        end = mask.shape[-1]
        places = torch.arange(end - length, end, device=tokens.device).repeat(batch)
        x, turn = functional.embedding(tokens, self.embedding), self.turn(places)
        for layer, cache in zip(self.layers, caches, strict=True):
            x = layer.step(x, turn, cache, mask)
        return self.logits(self._normed(x[:, -1]))

    def _normed(self, x: Tensor) -> Tensor:
        return functional.rms_norm(x, (x.shape[-1],), self.norm, self.epsilon)

    def logits(self, hidden: Tensor) -> Tensor:
        """The next token's scores."""
        return functional.linear(hidden, self.embedding)

    def loss(self, tokens: Tensor, groups: list[Shape], wanted: Tensor, next_: Tensor) -> Tensor:
        """The summed surprise: `wanted` are the places before what is learnt, which is `next_`."""
        hidden = self(tokens, groups)[wanted]
        return functional.cross_entropy(self.logits(hidden).float(), next_, reduction="sum")

    def merge(self) -> None:
        """Put the adapter into the weights; for a model that only speaks from now on."""
        for layer in self.layers:
            for module in layer.children():
                if isinstance(module, Adapted):
                    module.merge()

    def load(self, tensors: Mapping[str, Any]) -> None:
        """Take over the matrices of an adapter, as its file names them."""
        for at, layer in enumerate(self.layers):
            for name, module in layer.named_children():
                if isinstance(module, Adapted):
                    for side, own in (("a", module.a), ("b", module.b)):
                        held = tensors[f"blk.{at}.{name}.weight.lora_{side}"]
                        own.data.copy_(torch.from_numpy(held))

    def pairs(self) -> dict[str, tuple[Any, Any]]:
        """The adapter's matrices by the name of the tensor they belong to."""
        found: dict[str, tuple[Any, Any]] = {}
        for at, layer in enumerate(self.layers):
            for name, module in layer.named_children():
                if isinstance(module, Adapted):
                    matrices = (one.detach().float().cpu().numpy() for one in (module.a, module.b))
                    a, b = matrices
                    found[f"blk.{at}.{name}.weight"] = (a, b)
        return found
