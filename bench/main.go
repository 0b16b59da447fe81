package main

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"math"
	"net/http"
	"os"
	"os/exec"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"assay/harness/client"
	"assay/harness/clock"
	"assay/harness/metric"
	"assay/harness/record"
)

func main() {
	var err error
	if len(os.Args) > 1 && os.Args[1] == "null" {
		pin(0)
		err = serveNull()
	} else {
		err = bench()
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

// pin keeps this process on one core, where there is more than one.
func pin(core int) {
	if runtime.NumCPU() < 2 {
		return
	}
	var set unix.CPUSet
	set.Set(core)
	_ = unix.SchedSetaffinity(0, &set)
	runtime.GOMAXPROCS(1)
}

// rounds is how often each measurement is made; the median is shown.
const rounds = 3

func bench() error {
	self, err := os.Executable()
	if err != nil {
		return err
	}
	server := exec.Command(self, "null")
	server.Stderr = os.Stderr
	hold, err := server.StdinPipe()
	if err != nil {
		return err
	}
	out, err := server.StdoutPipe()
	if err != nil {
		return err
	}
	if err := server.Start(); err != nil {
		return err
	}
	defer func() { _ = hold.Close(); _ = server.Wait() }()
	address, err := bufio.NewReader(out).ReadString('\n')
	if err != nil {
		return err
	}
	pin(1)
	b := &suite{url: "http://" + strings.TrimSpace(address)}
	fmt.Printf("%d cores, client and null server on one each; median of %d rounds\n\n", runtime.NumCPU(), rounds)
	fmt.Printf("| what | this client | beside it, same run | target |\n|---|---:|---:|---|\n")
	b.arrivals(512, pace{150, 50 * time.Millisecond, 20 * time.Millisecond}, "p99 under 200 µs, and 100 times smaller")
	b.arrivals(64, pace{200, 50 * time.Millisecond, 10 * time.Millisecond}, "p99 under 100 µs")
	b.memory(512, pace{100, 50 * time.Millisecond, 20 * time.Millisecond})
	b.fullSpeed(64, 2000)
	b.paced(64, pace{1000, 20 * time.Millisecond, 1420 * time.Microsecond})
	b.peers()
	return nil
}

type suite struct{ url string }

// wave opens n connections, releases n requests together and waits for all.
func (b *suite) wave(n int, p pace) ([]*client.Raw, clock.Conversion) {
	c := client.New()
	clk := clock.Start()
	target := client.Target{BaseURL: b.url, Path: p.path()}
	request, err := client.NewChatRequest(client.ChatParams{Model: "null", Messages: []client.Message{{Role: "user", Content: "Hi"}}, MaxTokens: p.tokens, TopP: 1, TokenIDs: true})
	if err != nil {
		panic(err)
	}
	conns := make([]*client.Conn, n)
	for i := range conns {
		conns[i] = c.Dial(context.Background(), target)
	}
	runtime.GC()
	before := clk.Read()
	raws := make([]*client.Raw, n)
	var all sync.WaitGroup
	at := clk.Now()
	for i := range conns {
		all.Go(func() { raws[i] = conns[i].Do(context.Background(), clk, at, time.Minute, request) })
	}
	all.Wait()
	return raws, clock.Conversion{First: before, Last: clk.Read()}
}

// errors are arrival minus the server's write, in µs, over all events.
func errorsOf(raws []*client.Raw, conv clock.Conversion, decode *clock.Conversion) []float64 {
	var out []float64
	for _, raw := range raws {
		var r record.Request
		raw.Decode(&r, decode)
		stamps := r.OutputText
		for _, e := range r.Events {
			wall, err := strconv.ParseInt(stamps[:19], 10, 64)
			if err != nil {
				panic(err)
			}
			stamps = stamps[19:]
			out = append(out, float64(e.Arrival-conv.Monotonic(wall))/1e3)
		}
	}
	return out
}

func (b *suite) arrivals(n int, p pace, target string) {
	var k50, k99, u50, u99, ratio []float64
	for range rounds {
		raws, conv := b.wave(n, p)
		kernel, user := errorsOf(raws, conv, &conv), errorsOf(raws, conv, nil)
		k50, k99 = append(k50, metric.Percentile(kernel, 50)), append(k99, metric.Percentile(kernel, 99))
		u50, u99 = append(u50, metric.Percentile(user, 50)), append(u99, metric.Percentile(user, 99))
		ratio = append(ratio, u99[len(u99)-1]/k99[len(k99)-1])
	}
	fmt.Printf("| arrival error, %d streams, a token every %s, p50 / p99 | %.0f µs / %.0f µs | user-space times of the same reads: %.0f µs / %.0f µs, %.0f times | %s |\n",
		n, p.gap, metric.Median(k50), metric.Median(k99), metric.Median(u50), metric.Median(u99), metric.Median(ratio), target)
}

// memory is what a stream holds beyond the bytes that it received, at the end
// of the wave, before anything was decoded.
func (b *suite) memory(n int, p pace) {
	var each []float64
	for range rounds {
		var before, after runtime.MemStats
		runtime.GC()
		runtime.ReadMemStats(&before)
		raws, _ := b.wave(n, p)
		runtime.GC()
		runtime.ReadMemStats(&after)
		received := int64(0)
		for _, raw := range raws {
			received += raw.Received()
		}
		grown := int64(after.HeapInuse+after.StackInuse) - int64(before.HeapInuse+before.StackInuse)
		each = append(each, float64(grown-received)/float64(n)/1024)
		runtime.KeepAlive(raws)
	}
	fmt.Printf("| memory a stream beyond the bytes received, %d streams of %d tokens | %.1f KiB | | under 64 KiB |\n", n, p.tokens, metric.Median(each))
}

// cpu is this process's user and system time.
func cpu() time.Duration {
	var u syscall.Rusage
	_ = syscall.Getrusage(syscall.RUSAGE_SELF, &u)
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

// ours makes requests, n at a time, and decodes everything that came.
func (b *suite) ours(n, requests int, p pace) int {
	events := 0
	for done := 0; done < requests; done += n {
		raws, conv := b.wave(n, p)
		for _, raw := range raws {
			var r record.Request
			raw.Decode(&r, &conv)
			events += len(r.Events)
		}
	}
	return events
}

// plain is what most would write: net/http, bufio, encoding/json.
func (b *suite) plain(n, requests int, p pace) int {
	transport := &http.Transport{MaxIdleConnsPerHost: n}
	defer transport.CloseIdleConnections()
	c := &http.Client{Transport: transport}
	body := `{"model":"null","messages":[{"role":"user","content":"Hi"}],"max_tokens":128,"stream":true}`
	events := make([]int, n)
	var all sync.WaitGroup
	for i := range n {
		all.Go(func() {
			for done := i; done < requests; done += n {
				response, err := c.Post(b.url+p.path(), "application/json", strings.NewReader(body))
				if err != nil {
					panic(err)
				}
				lines := bufio.NewReader(response.Body)
				for {
					line, err := lines.ReadBytes('\n')
					if err == io.EOF {
						break
					}
					data, ok := strings.CutPrefix(string(line), "data: ")
					if !ok || strings.HasPrefix(data, "[DONE]") {
						continue
					}
					var chunk struct {
						Choices []struct {
							Delta struct {
								Content string `json:"content"`
							} `json:"delta"`
							FinishReason *string `json:"finish_reason"`
						} `json:"choices"`
						Usage *struct {
							CompletionTokens int `json:"completion_tokens"`
						} `json:"usage"`
					}
					if err := json.Unmarshal([]byte(data), &chunk); err != nil {
						panic(err)
					}
					if len(chunk.Choices) > 0 && chunk.Choices[0].Delta.Content != "" {
						events[i]++
					}
				}
				_ = response.Body.Close()
			}
		})
	}
	all.Wait()
	total := 0
	for _, e := range events {
		total += e
	}
	return total
}

// fullSpeed compares events a second when the server never waits; what this
// client decodes after each wave is in its time.
func (b *suite) fullSpeed(n, requests int) {
	p := pace{tokens: 128}
	var us, them []float64
	for range rounds {
		from := time.Now()
		events := b.plain(n, requests, p)
		them = append(them, float64(events)/time.Since(from).Seconds())
		from = time.Now()
		events = b.ours(n, requests, p)
		us = append(us, float64(events)/time.Since(from).Seconds())
	}
	fmt.Printf("| events a second at full speed, %d streams | %.0f | plain net/http: %.0f | at least as many |\n", n, metric.Median(us), metric.Median(them))
}

// paced compares processor time an event at a rate that both hold.
func (b *suite) paced(n int, p pace) {
	var us, them, rate []float64
	for range rounds {
		used, from := cpu(), time.Now()
		events := b.plain(n, n, p)
		them = append(them, float64((cpu()-used).Nanoseconds())/float64(events)/1e3)
		used, from = cpu(), time.Now()
		events = b.ours(n, n, p)
		us = append(us, float64((cpu()-used).Nanoseconds())/float64(events)/1e3)
		rate = append(rate, float64(events)/time.Since(from).Seconds())
	}
	fmt.Printf("| processor time an event, %d streams, %.0f events a second | %.1f µs | plain net/http: %.1f µs | no more |\n", n, metric.Median(rate), metric.Median(us), metric.Median(them))
}

// peers runs vLLM's own client where it is installed.
func (b *suite) peers() {
	vllm, err := exec.LookPath("vllm")
	tokenizer := os.Getenv("ASSAY_BENCH_TOKENIZER")
	if err != nil || tokenizer == "" {
		fmt.Println("\nvllm bench serve: not compared; it takes vllm on the PATH and a tokenizer's folder in ASSAY_BENCH_TOKENIZER")
		return
	}
	const n = 512
	p := pace{64, 50 * time.Millisecond, 20 * time.Millisecond}
	dir, err := os.MkdirTemp("", "assay-bench-")
	if err != nil {
		fmt.Println("\nvllm bench serve:", err)
		return
	}
	defer os.RemoveAll(dir)
	out, err := exec.Command(vllm, "bench", "serve", "--backend", "openai-chat", "--base-url", b.url, "--endpoint", p.path(),
		"--model", "null", "--tokenizer", tokenizer, "--dataset-name", "random", "--random-input-len", "32", "--random-output-len", "64",
		"--num-prompts", strconv.Itoa(n), "--max-concurrency", strconv.Itoa(n), "--ready-check-timeout-sec", "0",
		"--percentile-metrics", "ttft", "--metric-percentiles", "50,99", "--save-result", "--result-dir", dir, "--result-filename", "out.json", "--disable-tqdm").CombinedOutput()
	if err != nil {
		lines := strings.Split(strings.TrimSpace(string(out)), "\n")
		fmt.Printf("\nvllm bench serve: %s: %s\n", err, lines[len(lines)-1])
		return
	}
	var result map[string]any
	data, err := os.ReadFile(dir + "/out.json")
	if err == nil {
		err = json.Unmarshal(data, &result)
	}
	if err != nil {
		fmt.Println("\nvllm bench serve:", err)
		return
	}
	raws, conv := b.wave(n, p)
	var ttfts []float64
	for _, raw := range raws {
		var r record.Request
		raw.Decode(&r, &conv)
		if v, reason := metric.TTFT(r); reason == "" {
			ttfts = append(ttfts, float64(v)/1e6)
		}
	}
	fmt.Printf("| TTFT in a burst of %d, true 50 ms and the accept queue, p50 / p99 | %.1f / %.1f ms | vllm bench serve: %.1f / %.1f ms | |\n",
		n, metric.Percentile(ttfts, 50), metric.Percentile(ttfts, 99), number(result["p50_ttft_ms"]), number(result["p99_ttft_ms"]))
}

func number(v any) float64 {
	f, ok := v.(float64)
	if !ok {
		return math.NaN()
	}
	return f
}
