#!/usr/bin/env python3
"""--vocab-file cuts a text into the tokens of the package `tokenizers`, which is Hugging Face's: a vocabulary is trained there, and the loss of a model with
drawn weights on a text of all kinds is PyTorch's on that package's ids, in f64. A token that differs changes it. Bits a byte are of the text's bytes.

usage: pairs.py EVENLOAD FOLDER      prints a line a text; exit status 1 where one is over its limit
"""
import json
import math
import os
import random
import subprocess
import sys
import unicodedata

import torch
from tokenizers import ByteLevelBPETokenizer

import gpt
import weights

LIMIT = 1e-12
gpt.LAYERS, gpt.WIDTH, gpt.HEADS, gpt.SEQ, gpt.VOCAB = 1, 8, 2, 32, 640
MIXED = (
    "It's a cat; they've GONE, I'll 've 'd'S  don't\n\n  d\u00e9j\u00e0 vu na\u00efve \u00dcn\u00ef \u00df e\u0301 \u0395\u03bb\u03bb\u03b7\u03bd\u03b9\u03ba\u03ac "
    "\u041f\u0440\u0438\u0432\u0435\u0442 \u4f60\u597d\uff0c\u4e16\u754c\u3002\u6211\u4eec\u53bb\u5b66\u6821 \u65e5\u672c\u8a9e\u30c6\u30ad\u30b9\u30c8 \ud55c\uad6d\uc5b4 "
    "\u0939\u093f\u0928\u094d\u0926\u0940 \u0e20\u0e32\u0e29\u0e32\u0e44\u0e17\u0e22 \u0661\u0662\u0663 \u00bd \u00b2 \u2167 12345 3.14e-10 0x1F \U0001f389\U0001f469\u200d\U0001f467"
    "\U0001f1e9\U0001f1ea \t tab\t\ttabs   three \r\n lines\r\n for (int i = 0; i < n; i++) { a[i] += *p->q; } // ok\n\u00a0nbsp\u00a0 x\u3000\u3000y \u2028 "
    "<|endoftext|> ''' '' 'tis we're \u200b zero\ufeff"
)


def drawn():
    draw = random.Random(1)
    return "".join(draw.choices(MIXED + " " * 40 + "'" * 10, k=20000))


def borders():
    """Each character that is of another kind than the one before it, among all kinds of neighbours."""
    kinds = [(unicodedata.category(chr(c))[0], chr(c).isspace()) for c in range(0x110000)]
    found = [chr(c) for c in range(1, 0x110000) if kinds[c] != kinds[c - 1] and kinds[c][0] != "C"]
    assert len(found) > 1500
    return "".join(f"a{c}b1{c}2!{c}? {c} " for c in found)


def run(program, folder, name):
    sizes = ("--layers", gpt.LAYERS, "--embed", gpt.WIDTH, "--heads", gpt.HEADS, "--seq", gpt.SEQ)
    command = [program, "run", "--model", "gpt", *sizes, "--vocab-file", "vocab.json", "--data", "train.txt", "--test", f"{name}.txt", "--dtype", "f64"]
    command += ["--batch", 16, "--epochs", 1, "--optimizer", "sgd", "--lr", 0, "--load", "begin.safetensors", "--control", "none"]
    command += ["--out", f"run-{name}", "--json", "--quiet"]
    done = subprocess.run([str(word) for word in command], capture_output=True, text=True, timeout=300, cwd=folder)
    if done.returncode != 0:
        sys.exit(f"{command}\nexit status {done.returncode}\n{done.stderr}")
    return json.loads(done.stdout)["evaluation"]


def expected(model, tokenizer, text):
    ids = tokenizer.encode(text).ids
    rows = torch.tensor(ids).unfold(0, gpt.SEQ + 1, gpt.SEQ)
    with torch.no_grad():
        loss = torch.stack([gpt.loss_of(model(row[None, :-1]), row[1:]) for row in rows]).mean().item()
    bytes_of = [len(token) for token in (tokenizer.id_to_token(i) for i in range(tokenizer.get_vocab_size()))]  # a character is a byte there
    counted = rows[:, 1:].numel()
    return counted, loss, loss * counted / math.log(2) / sum(bytes_of[i] for i in rows[:, 1:].flatten().tolist())


def main(program, folder):
    torch.set_num_threads(1)
    texts = {"mixed": MIXED * 3, "drawn": drawn(), "borders": borders()}
    path = {name: os.path.join(folder, f"{name}.txt") for name in ("train", *texts)}
    for name, text in {"train": MIXED * 20, **texts}.items():
        with open(path[name], "wb") as file:
            file.write(text.encode())
    trained = ByteLevelBPETokenizer()
    trained.train([path["train"]], vocab_size=gpt.VOCAB, min_frequency=2)
    trained.save_model(folder)
    tokenizer = ByteLevelBPETokenizer(os.path.join(folder, "vocab.json"), os.path.join(folder, "merges.txt"))
    gpt.VOCAB, over = tokenizer.get_vocab_size(), 0
    assert gpt.VOCAB > 400, "a vocabulary of bytes alone"
    torch.manual_seed(1)
    model = gpt.GPT().double()
    weights.save(model.state_dict(), os.path.join(folder, "begin.safetensors"))
    for name, text in texts.items():
        found, (counted, loss, bits) = run(program, folder, name), expected(model, tokenizer, text)
        difference = max(abs(found["loss"] / loss - 1), abs(found["bits_per_byte"] / bits - 1), abs(found["counted"] - counted))
        over += difference > LIMIT
        print(f"{name:8} {counted:6} tokens, {bits:.3f} bits a byte {difference:8.1e}  (at most {LIMIT}){'  OVER' * (difference > LIMIT)}", flush=True)
    sys.exit(over > 0)


if __name__ == "__main__":
    main(os.path.abspath(sys.argv[1]), sys.argv[2])
