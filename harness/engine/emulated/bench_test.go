package emulated_test

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"io"
	"math"
	"net"
	"strings"
	"sync"
	"testing"
	"time"

	"assay/harness/client"
	"assay/harness/clock"
	"assay/harness/engine"
	"assay/harness/engine/emulated"
	"assay/harness/engine/emulated/scheduler"
	"assay/harness/record"
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

// BenchmarkReplay asks a replay for its twelve answers twelve times, one after
// the other and two hundred times as fast, and says by how much what a client
// sees is longer than what is declared: the mean of the requests' absolute
// errors as a share of the mean request, and the sum of all of them. The
// client's pauses between two requests are no part of it.
func BenchmarkReplay(b *testing.B) {
	const scale, forced = 200, 96
	for _, c := range []struct {
		set   string
		exact bool
	}{{"rtx4090-eager", false}, {"rtx4090-compiled", false}, {"rtx4090-eager", true}, {"rtx4090-compiled", true}} {
		lane := "natural"
		if c.exact {
			lane = "fixed"
		}
		b.Run(c.set+"/"+lane, func(b *testing.B) {
			set, exact := c.set, c.exact
			c := emulated.Config{Parameters: scheduler.Sets()[set], Model: "m", Seed: 1, Scale: scale}
			c.Parameters.Noise = 0
			for i := range c.Parameters.Answers {
				c.Prompts = append(c.Prompts, fmt.Sprintf("Prompt %d.", i))
			}
			s, err := emulated.New(c).Launch(b.Context(), engine.Launch{Logs: io.Discard, Mark: func(engine.Moment) {}})
			if err != nil {
				b.Fatal(err)
			}
			b.Cleanup(func() { _ = s.Stop(context.Background()) })
			var sum, declared, off float64 // s, emulated
			var n int
			for b.Loop() {
				for i := range 144 {
					r := record.Request{}
					request, err := client.NewChatRequest(client.Params{Model: "m", Messages: []client.Message{{Role: "user", Content: c.Prompts[i%12]}}, MaxTokens: forced, TopP: 1, TokenIDs: true, Exact: exact})
					if err != nil {
						b.Fatal(err)
					}
					clk := clock.Start()
					before := clk.Read()
					raw := client.New().Dial(b.Context(), client.Target{BaseURL: s.URL()}).Do(b.Context(), clk, clk.Now(), time.Minute, request)
					raw.Decode(&r, &clock.Conversion{First: before, Last: clk.Read()})
					want := c.Parameters.Answers[i%12]
					if exact {
						want.Total = want.FirstToken + (forced-1)*(want.Total-want.FirstToken)/time.Duration(want.Tokens-1)
						want.Tokens = forced
					}
					if r.Outcome != record.OK || len(r.OutputTokenIDs) != want.Tokens {
						b.Fatalf("request %d: %s with %d tokens", i+1, r.Outcome, len(r.OutputTokenIDs))
					}
					took := time.Duration(r.EndedAt-*r.SentAt).Seconds() * scale
					sum, declared, n = sum+took, declared+want.Total.Seconds(), n+1
					off += math.Abs(took - want.Total.Seconds())
				}
			}
			b.ReportMetric(100*off/declared, "%error")
			b.ReportMetric(100*(sum-declared)/declared, "%drift")
			b.ReportMetric(1e6*(sum-declared)/scale/float64(n), "µs/request") // of this machine's
		})
	}
}
