"""A model for vLLM that needs no weights, and says what it is told to. Runs in vLLM's environment.

As a script it writes the model's folder; `Told` is a logits processor, which vLLM loads.
"""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path
from typing import Any

from tokenizers import AddedToken, Tokenizer, decoders, models, pre_tokenizers
from transformers import AutoTokenizer, PreTrainedTokenizerFast
from vllm.v1.sample.logits_processor import LogitsProcessor

END = "<|im_end|>"
MARKS = (
    *("<think>", "</think>", "<tool_call>", "</tool_call>"),
    *("<arg_key>", "</arg_key>", "<arg_value>", "</arg_value>"),
    *("<minimax:tool_call>", "</minimax:tool_call>"),
    *("<｜User｜>", "<｜Assistant｜>", "｜DSML｜"),
)
"""What the tokenizers of families know as one token, and their parsers look for."""
CONFIG = {
    "architectures": ["Qwen3ForCausalLM"],
    "model_type": "qwen3",
    "vocab_size": 512,
    "hidden_size": 64,
    "intermediate_size": 64,
    "num_hidden_layers": 1,
    "num_attention_heads": 2,
    "num_key_value_heads": 2,
    "head_dim": 32,
    "max_position_embeddings": 32768,
    "dtype": "bfloat16",
    "tie_word_embeddings": True,
}


def write(folder: Path) -> None:
    """Write a tokenizer that has a token for each byte and mark, and the model's shape."""
    alphabet = sorted(pre_tokenizers.ByteLevel.alphabet())
    vocabulary = {letter: number for number, letter in enumerate(alphabet)}
    tokenizer = Tokenizer(models.BPE(vocab=vocabulary, merges=[]))
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    tokenizer.add_special_tokens([END])
    tokenizer.add_tokens([AddedToken(mark, normalized=False) for mark in MARKS])
    whole = PreTrainedTokenizerFast(tokenizer_object=tokenizer, eos_token=END, pad_token=END)
    whole.save_pretrained(folder)
    config = {**CONFIG, "eos_token_id": whole.eos_token_id}
    (folder / "config.json").write_text(json.dumps(config))


class Told(LogitsProcessor):
    """Writes each prompt that reaches the model into a file, and makes the model say the words of
    another: only the server around it decides what becomes of either.
    """

    def __init__(self, config: Any, device: object, is_pin_memory: object) -> None:
        self._folder = Path(os.environ["TOLD"])
        self._tokenizer = AutoTokenizer.from_pretrained(config.model_config.tokenizer)
        self._said: dict[int, tuple[list[int], list[int]]] = {}

    def is_argmax_invariant(self) -> bool:
        return False

    def update_state(self, batch_update: Any) -> None:
        if batch_update is None:
            return
        for index in batch_update.removed:
            self._said.pop(index, None)
        for index, _, prompt, said in batch_update.added:
            (self._folder / "prompt").write_text(self._tokenizer.decode(prompt))
            self._said[index] = (self._words(), said)
        for before, after, _ in batch_update.moved:
            self._said[after] = self._said.pop(before)

    def _words(self) -> list[int]:
        words = (self._folder / "words").read_text()
        return [*self._tokenizer.encode(words), self._tokenizer.eos_token_id]

    def apply(self, logits: Any) -> Any:
        for index, (words, said) in self._said.items():
            token = words[min(len(said), len(words) - 1)]
            logits[index] = float("-inf")
            logits[index, token] = 0
        return logits


if __name__ == "__main__":
    write(Path(sys.argv[1]))
