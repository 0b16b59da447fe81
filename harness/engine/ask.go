package engine

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"time"
)

// Ask reads what a server says of itself through its own interfaces: the
// engine's version from /version, the models from /v1/models and, where it is
// served, the configuration from /server_info. The parts of an initialization
// are among it, and null as long as no such interface has them. What it does
// not serve is null, with the reason. Each prepare may add a header, such as a
// key.
func Ask(ctx context.Context, url string, prepare ...func(*http.Request)) Identity {
	var version struct {
		Version string `json:"version"`
	}
	var models struct {
		Data []struct {
			ID          string `json:"id"`
			MaxModelLen int    `json:"max_model_len"`
		} `json:"data"`
	}
	id := Identity{}
	const reported = "engine_reported"
	switch err := get(ctx, url+"/version", &version, prepare); {
	case err != nil:
		id["engine_version"] = Fact{Reason: err.Error()}
	case version.Version == "":
		id["engine_version"] = Fact{Reason: "/version says none"}
	default:
		id["engine_version"] = Fact{Value: version.Version, Provenance: reported}
	}
	switch err := get(ctx, url+"/v1/models", &models, prepare); {
	case err != nil:
		id["models"] = Fact{Reason: err.Error()}
	default:
		names := []string{}
		for _, m := range models.Data {
			names = append(names, m.ID)
			if m.MaxModelLen > 0 {
				id["max_model_len"] = Fact{Value: m.MaxModelLen, Provenance: reported}
			}
		}
		id["models"] = Fact{Value: names, Provenance: reported}
	}
	// What it says of its environment may hold secrets, and is left there.
	var info struct {
		Config any `json:"vllm_config"`
	}
	switch err := get(ctx, url+"/server_info?config_format=json", &info, prepare); {
	case err != nil:
		id["engine_config"] = Fact{Reason: "/server_info: " + err.Error()}
	case info.Config == nil:
		id["engine_config"] = Fact{Reason: "/server_info has no vllm_config"}
	default:
		id["engine_config"] = Fact{Value: info.Config, Provenance: reported}
	}
	// What a log may print of them is no interface, and is never parsed.
	for _, part := range []string{"compilation_seconds", "graph_capture_seconds", "weight_load_seconds"} {
		id[part] = Fact{Reason: "no stable interface of the engine says it"}
	}
	return id
}

func get(ctx context.Context, url string, into any, prepare []func(*http.Request)) error {
	ctx, cancel := context.WithTimeout(ctx, 10*time.Second)
	defer cancel()
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return err
	}
	for _, p := range prepare {
		p(request)
	}
	response, err := plainClient().Do(request)
	if err != nil {
		return fmt.Errorf("it was asked and did not answer")
	}
	defer response.Body.Close()
	if response.StatusCode != http.StatusOK {
		return fmt.Errorf("it answered %s", response.Status)
	}
	if err := json.NewDecoder(io.LimitReader(response.Body, 1<<20)).Decode(into); err != nil {
		return fmt.Errorf("it answered no JSON")
	}
	return nil
}
