package container

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"slices"

	"github.com/moby/moby/client"

	"assay/harness/engine"
	"assay/harness/record"
)

// Identity is what Docker says of the container and its image, what the
// server says of itself, and what the model's inventory says of the model.
func (s *Server) Identity(ctx context.Context) engine.Identity {
	declared := func(v any) engine.Fact { return engine.Fact{Value: v, Provenance: string(record.Declared)} }
	id := engine.Identity{
		"engine": declared("container"),
		"image":  declared(s.config.Image),
		"args":   declared(engine.HideSecrets(s.config.Args)),
		"gpus":   declared(s.config.gpus()),
		// The values may be secrets.
		"env_names":         declared(append([]string{}, slices.Sorted(maps.Keys(s.config.Env))...)),
		"path":              declared("a port of the loopback interface, forwarded by Docker"),
		"attention_backend": engine.Fact{Reason: "no stable interface of the engine says it"},
		"model_digest":      s.modelDigest(ctx),
	}
	if s.config.wantsGPU() {
		id["gpu_access"] = engine.Fact{Value: string(s.access.name), Provenance: string(record.ClientObserved)}
		id["gpus_seen"] = s.gpuSeen
	}
	s.image.facts(id)
	maps.Copy(id, s.imageFacts(ctx))
	if version, err := s.docker.ServerVersion(ctx, client.ServerVersionOptions{}); err == nil {
		id["docker_version"] = engine.Fact{Value: version.Version, Provenance: string(record.EngineReported)}
	} else {
		id["docker_version"] = engine.Fact{Reason: short(err)}
	}
	maps.Copy(id, engine.Ask(ctx, s.url))
	return id
}

// gpus is which GPUs the container was given: "all", "none", or how many by
// name, since a name may tell one GPU from all others.
func (c Config) gpus() string {
	switch {
	case c.AllGPUs:
		return "all"
	case len(c.GPUs) > 0:
		return fmt.Sprintf("%d by name", len(c.GPUs))
	default:
		return "none"
	}
}

// imageFacts are those of the image that the container really has: its name
// may stand for another one by now.
func (s *Server) imageFacts(ctx context.Context) engine.Identity {
	names := []string{"image_id", "image_created", "image_tags", "image_digest"}
	unknown := func(err error) engine.Identity {
		id := engine.Identity{}
		for _, name := range names {
			id[name] = engine.Fact{Reason: short(err)}
		}
		return id
	}
	inspected, err := s.container.Inspect(ctx)
	if err != nil {
		return unknown(err)
	}
	image, err := s.docker.ImageInspect(ctx, inspected.Image)
	if err != nil {
		return unknown(err)
	}
	reported := func(v any) engine.Fact { return engine.Fact{Value: v, Provenance: string(record.EngineReported)} }
	id := engine.Identity{
		"image_id":      reported(image.ID),
		"image_created": reported(image.Created),
		"image_tags":    reported(append([]string{}, image.RepoTags...)),
		"image_digest":  engine.Fact{Reason: "the image was built here: no registry has given it a digest"},
	}
	if len(image.RepoDigests) > 0 {
		id["image_digest"] = reported(image.RepoDigests[0])
	}
	return id
}

// modelDigest reads the digest that scripts/model.sh computed over the model's
// files when it made them.
func (s *Server) modelDigest(ctx context.Context) engine.Fact {
	for _, m := range s.config.Mounts {
		file, err := s.container.CopyFileFromContainer(ctx, m.Target+"/inventory.json")
		if err != nil {
			continue
		}
		data, err := io.ReadAll(io.LimitReader(file, 1<<20))
		_ = file.Close()
		var inventory struct {
			Digest string `json:"digest"`
		}
		if err == nil && json.Unmarshal(data, &inventory) == nil && inventory.Digest != "" {
			return engine.Fact{Value: inventory.Digest, Provenance: string(record.Attested)}
		}
	}
	return engine.Fact{Reason: "no mount has an inventory.json with a digest"}
}
