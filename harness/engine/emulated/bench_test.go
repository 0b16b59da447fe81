package emulated_test

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"io"
	"net"
	"strings"
	"sync"
	"testing"

	"assay/harness/engine"
	"assay/harness/engine/emulated"
	"assay/harness/engine/emulated/scheduler"
)

// BenchmarkWave streams 64 answers of 128 tokens at once, without any pause of
// the model's: what is left is the cost of the server and of the plainest
// client there is, both in this process.
func BenchmarkWave(b *testing.B) {
	const clients, tokens = 64, 128
	p := scheduler.Sets()["t4-vllm"]
	s, err := emulated.New(emulated.Config{Parameters: p, Model: "m", Seed: 1, Scale: 1e4}).Launch(b.Context(), engine.Launch{Logs: io.Discard, Mark: func(engine.Moment) {}})
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { _ = s.Stop(context.Background()) })
	body := fmt.Sprintf(`{"model":"m","messages":[{"role":"user","content":"Why is the sky blue?"}],"max_tokens":%d,"ignore_eos":true,"stream":true,"return_token_ids":true}`, tokens)
	request := fmt.Sprintf("POST /v1/chat/completions HTTP/1.1\r\nHost: x\r\nContent-Length: %d\r\n\r\n%s", len(body), body)
	for b.Loop() {
		var all sync.WaitGroup
		for range clients {
			all.Go(func() {
				conn, err := net.Dial("tcp", strings.TrimPrefix(s.URL(), "http://"))
				if err != nil {
					b.Error(err)
					return
				}
				defer conn.Close()
				if _, err := io.WriteString(conn, request); err != nil {
					b.Error(err)
				}
				r := bufio.NewReader(conn)
				for {
					line, err := r.ReadSlice('\n')
					if err != nil {
						b.Error(err)
						return
					}
					if bytes.HasPrefix(line, []byte("data: [DONE]")) {
						return
					}
				}
			})
		}
		all.Wait()
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N*clients*tokens), "ns/token")
}
