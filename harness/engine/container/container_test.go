package container_test

import (
	"context"
	"crypto/sha256"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/moby/moby/client"
	. "github.com/onsi/gomega"
	"github.com/testcontainers/testcontainers-go"

	"assay/harness/engine"
	"assay/harness/engine/container"
)

// tiny is a server's image of a few megabytes: one static binary, built here,
// and named after what it is built from.
var tiny = fmt.Sprintf("assay/test-tiny:%.6x", sha256.Sum256([]byte(source)))

func TestMain(m *testing.M) {
	code := m.Run()
	if provider, err := testcontainers.NewDockerProvider(); err == nil {
		_, _ = provider.Client().ImageRemove(context.Background(), tiny, client.ImageRemoveOptions{Force: true, PruneChildren: true})
	}
	os.Exit(code)
}

const source = `package main

import (
	"fmt"
	"net/http"
	"os"
	"os/signal"
	"strings"
	"sync"
	"syscall"
)

func main() {
	switch os.Args[len(os.Args)-1] {
	case "dies":
		fmt.Println("no such model")
		os.Exit(3)
	case "stubborn":
		signal.Ignore(syscall.SIGTERM)
	case "talks": // on both streams at once; Docker passes long lines on in pieces
		long := strings.Repeat("-", 100_000)
		for i := range 10 {
			var both sync.WaitGroup
			both.Go(func() { fmt.Printf("<out %s %d>\n", long, i) })
			both.Go(func() { fmt.Fprintf(os.Stderr, "<err %s %d>\n", long, i) })
			both.Wait()
		}
	}
	http.HandleFunc("/health", func(http.ResponseWriter, *http.Request) {})
	http.HandleFunc("/die", func(http.ResponseWriter, *http.Request) { fmt.Println("dying"); os.Exit(7) })
	fmt.Println("listening")
	fmt.Println(http.ListenAndServe(":8000", nil))
}
`

// docker skips where no Docker answers: the suites, which may be asked for it
// by name, fail there.
func docker(t *testing.T) client.APIClient {
	t.Helper()
	t.Setenv("TESTCONTAINERS_RYUK_DISABLED", "true")
	provider, err := testcontainers.NewDockerProvider()
	if err == nil {
		_, err = provider.Client().Ping(t.Context(), client.PingOptions{})
	}
	if err != nil {
		t.Skip("no Docker answers: ", err)
	}
	t.Cleanup(func() { _ = provider.Close() })
	return provider.Client()
}

// folder is what the tiny image is built from.
func folder(t *testing.T) string {
	t.Helper()
	g := NewWithT(t)
	dir := t.TempDir()
	g.Expect(os.WriteFile(filepath.Join(dir, "main.go"), []byte(source), 0o644)).To(Succeed())
	build := exec.CommandContext(t.Context(), "go", "build", "-o", filepath.Join(dir, "server"), filepath.Join(dir, "main.go"))
	build.Env = append(os.Environ(), "CGO_ENABLED=0", "GOOS=linux")
	out, err := build.CombinedOutput()
	g.Expect(err).NotTo(HaveOccurred(), string(out))
	g.Expect(os.WriteFile(filepath.Join(dir, "Dockerfile"), []byte("FROM scratch\nCOPY server /server\nENTRYPOINT [\"/server\"]\n"), 0o644)).To(Succeed())
	return dir
}

type log struct {
	mu  sync.Mutex
	out strings.Builder
}

func (l *log) Write(p []byte) (int, error) { l.mu.Lock(); defer l.mu.Unlock(); return l.out.Write(p) }
func (l *log) String() string              { l.mu.Lock(); defer l.mu.Unlock(); return l.out.String() }

func launch(t *testing.T, c container.Config) (engine.Server, *log, *[]engine.Phase, error) {
	t.Helper()
	var out log
	var mu sync.Mutex
	var phases []engine.Phase
	s, err := container.New(c).Launch(t.Context(), engine.Launch{Run: "test-" + t.Name(), Name: "01-x", Logs: &out, Stop: 2 * time.Second, Mark: func(m engine.Moment) {
		mu.Lock()
		defer mu.Unlock()
		phases = append(phases, m.Phase)
	}})
	if s != nil {
		t.Cleanup(func() { _ = s.Stop(context.Background()) })
	}
	return s, &out, &phases, err
}

// left counts the containers of a test's run.
func left(t *testing.T, d client.APIClient) int {
	t.Helper()
	found, err := d.ContainerList(t.Context(), client.ContainerListOptions{All: true, Filters: client.Filters{}.Add("label", container.RunLabel+"=test-"+t.Name())})
	NewWithT(t).Expect(err).NotTo(HaveOccurred())
	return len(found.Items)
}

func TestAContainerIsBuiltStartedWatchedAndRemoved(t *testing.T) {
	d := docker(t)
	g := NewWithT(t)
	s, out, phases, err := launch(t, container.Config{Image: tiny, Build: folder(t), Port: 8000})
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(engine.AwaitReady(t.Context(), s, engine.ReadyOptions{Poll: 5 * time.Millisecond})).To(Succeed())
	g.Expect(left(t, d)).To(Equal(1))
	g.Expect(s.Stop(t.Context())).To(Succeed())
	g.Expect(s.Exit().Asked).To(BeTrue())
	g.Expect(out.String()).To(ContainSubstring("listening\n"))
	g.Expect(*phases).To(Equal([]engine.Phase{engine.ImageReady, engine.Created, engine.Started, engine.EngineStarted, engine.Exited, engine.Removed}))
	g.Expect(left(t, d)).To(Equal(0))
}

func TestAContainerThatDiesSaysHow(t *testing.T) {
	d := docker(t)
	g := NewWithT(t)
	s, _, _, err := launch(t, container.Config{Image: tiny, Build: folder(t), Port: 8000, Args: []string{"dies"}})
	if err == nil { // it may come up and be gone a moment later
		err = engine.AwaitReady(t.Context(), s, engine.ReadyOptions{Poll: 5 * time.Millisecond})
		g.Expect(s.Stop(t.Context())).To(Succeed())
	}
	g.Expect(err).To(MatchError(engine.ErrExited))
	g.Expect(err).To(MatchError(And(ContainSubstring("code 3"), ContainSubstring("no such model"))))
	g.Expect(left(t, d)).To(Equal(0))
}

func TestAContainerThatDiesInServiceIsSeen(t *testing.T) {
	docker(t)
	g := NewWithT(t)
	s, _, _, err := launch(t, container.Config{Image: tiny, Build: folder(t), Port: 8000})
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(engine.AwaitReady(t.Context(), s, engine.ReadyOptions{Poll: 5 * time.Millisecond})).To(Succeed())
	g.Expect(exec.Command("curl", "-s", s.URL()+"/die").Run()).NotTo(Succeed())
	g.Eventually(s.Done()).WithTimeout(10 * time.Second).Should(BeClosed())
	exit := s.Exit()
	g.Expect(exit.Asked).To(BeFalse())
	g.Expect(*exit.Code).To(Equal(7))
	g.Expect(exit.LastLines).To(ContainElement("dying"))
}

func TestWhatIsMissingIsSaidAtOnce(t *testing.T) {
	docker(t)
	g := NewWithT(t)
	err := container.New(container.Config{
		Image: "assay/none:1", Build: "/no/such/folder", AllGPUs: true,
		Mounts: []container.Mount{{Volume: "assay-no-such-model", Target: "/model"}, {Source: "/no/such/folder", Target: "/data"}},
	}).Check(t.Context())
	g.Expect(err).To(MatchError(engine.ErrUnavailable))
	for _, word := range []string{"make model", "/no/such/folder", "make images", "nvidia"} {
		g.Expect(err).To(MatchError(ContainSubstring(word)))
	}
}

func TestAnImageThatCanNotBeHad(t *testing.T) {
	docker(t)
	_, _, _, err := launch(t, container.Config{Image: "localhost:1/none:1", Port: 8000})
	NewWithT(t).Expect(err).To(MatchError(ContainSubstring("can't be pulled")))
}

func TestWhatAKilledRunLeftIsRemovedAndALivingOneIsNot(t *testing.T) {
	d := docker(t)
	g := NewWithT(t)
	s, _, _, err := launch(t, container.Config{Image: tiny, Build: folder(t), Port: 8000})
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(container.RemoveLeftovers(t.Context(), d)).To(Succeed())
	g.Expect(left(t, d)).To(Equal(1), "this process lives")
	g.Expect(s.Stop(t.Context())).To(Succeed())

	// A container with the labels of a process that is gone.
	gone := exec.Command("true")
	g.Expect(gone.Run()).To(Succeed())
	labels := container.LabelsOf(engine.Launch{Run: "test-" + t.Name(), Name: "01-x"}, gone.Process.Pid)
	args := []string{"create"}
	for name, value := range labels {
		args = append(args, "--label", name+"="+value)
	}
	out, err := exec.Command("docker", append(args, tiny)...).CombinedOutput()
	g.Expect(err).NotTo(HaveOccurred(), string(out))
	g.Expect(left(t, d)).To(Equal(1))
	g.Expect(container.RemoveLeftovers(t.Context(), d)).To(Succeed())
	g.Expect(left(t, d)).To(Equal(0))
}

func TestEveryFactIsAValueOrAReason(t *testing.T) {
	docker(t)
	g := NewWithT(t)
	model := t.TempDir()
	g.Expect(os.WriteFile(filepath.Join(model, "inventory.json"), []byte(`{"digest":"d1"}`), 0o644)).To(Succeed())
	s, _, _, err := launch(t, container.Config{
		Image: tiny, Build: folder(t), Port: 8000, Args: []string{"--api-key", "s3cret"}, Env: map[string]string{"TOKEN": "s3cret"},
		Mounts: []container.Mount{{Source: model, Target: "/model", ReadOnly: true}},
	})
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(engine.AwaitReady(t.Context(), s, engine.ReadyOptions{Poll: 5 * time.Millisecond})).To(Succeed())
	id := s.Identity(t.Context())
	for name, f := range id {
		g.Expect(f.Value == nil).To(Equal(f.Reason != ""), "%s: %+v", name, f)
		g.Expect(f.Value == nil).To(Equal(f.Provenance == ""), "%s: %+v", name, f)
	}
	g.Expect(id["image_id"].Value).To(HavePrefix("sha256:"))
	g.Expect(id["image_tags"].Value).To(ContainElement(tiny))
	g.Expect(id["image_origin"].Value).To(ContainSubstring("found"))
	g.Expect(id["image_build_ns"].Reason).To(ContainSubstring("found"))
	g.Expect(id["model_digest"]).To(Equal(engine.Fact{Value: "d1", Provenance: "attested"}))
	g.Expect(id["env_names"].Value).To(Equal([]string{"TOKEN"}))
	g.Expect(fmt.Sprint(id)).NotTo(ContainSubstring("s3cret"))
}

func TestBothStreamsArriveInWholeLines(t *testing.T) {
	docker(t)
	g := NewWithT(t)
	s, out, _, err := launch(t, container.Config{Image: tiny, Build: folder(t), Port: 8000, Args: []string{"talks"}})
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(engine.AwaitReady(t.Context(), s, engine.ReadyOptions{Poll: 5 * time.Millisecond})).To(Succeed())
	g.Expect(s.Stop(t.Context())).To(Succeed())
	long := strings.Repeat("-", 100_000)
	for i := range 10 {
		for _, stream := range []string{"out", "err"} {
			g.Expect(strings.Contains(out.String(), fmt.Sprintf("<%s %s %d>\n", stream, long, i))).To(BeTrue(), "line %d of %s is not whole", i, stream)
		}
	}
}

func TestAStubbornContainerIsKilled(t *testing.T) {
	d := docker(t)
	g := NewWithT(t)
	s, _, _, err := launch(t, container.Config{Image: tiny, Build: folder(t), Port: 8000, Args: []string{"stubborn"}})
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(engine.AwaitReady(t.Context(), s, engine.ReadyOptions{Poll: 5 * time.Millisecond})).To(Succeed())
	leaving, cancel := context.WithCancel(t.Context())
	cancel() // a caller that is leaving does not wait, and leaves nothing
	g.Expect(s.Stop(leaving)).To(Succeed())
	g.Expect(*s.Exit().Code).To(Equal(128 + 9))
	g.Expect(s.Exit().Asked).To(BeTrue())
	g.Expect(left(t, d)).To(Equal(0))
	g.Expect(s.Stop(t.Context())).To(Succeed(), "twice is once")
}

func TestACommandThatTheImageLacks(t *testing.T) {
	d := docker(t)
	g := NewWithT(t)
	_, _, phases, err := launch(t, container.Config{Image: tiny, Build: folder(t), Port: 8000, Entrypoint: []string{"/no-such-command"}})
	g.Expect(err).To(MatchError(ContainSubstring("/no-such-command")))
	g.Expect(err).NotTo(MatchError(engine.ErrExited), "it never ran")
	g.Expect(*phases).NotTo(ContainElement(engine.Exited))
	g.Expect(left(t, d)).To(Equal(0))
}

func TestALaunchWithoutItsMountsFails(t *testing.T) {
	d := docker(t)
	g := NewWithT(t)
	_, _, _, err := launch(t, container.Config{Image: tiny, Build: folder(t), Port: 8000, Mounts: []container.Mount{{Volume: "assay-no-such-model", Target: "/model"}}})
	g.Expect(err).To(MatchError(engine.ErrUnavailable))
	_, err = d.VolumeInspect(t.Context(), "assay-no-such-model", client.VolumeInspectOptions{})
	g.Expect(err).To(HaveOccurred(), "Docker was not to make it")
}

// TestAGPUThatDockerCanNotGive: nothing falls back to a processor in silence,
// and nothing is timed before that is known.
func TestAGPUThatDockerCanNotGive(t *testing.T) {
	d := docker(t)
	g := NewWithT(t)
	config := container.Config{Image: tiny, Build: folder(t), Port: 8000, AllGPUs: true}
	s, _, phases, err := launch(t, config)
	if err == nil {
		g.Expect(s.Stop(t.Context())).To(Succeed())
		t.Skip("this machine's Docker can give one")
	}
	g.Expect(err).To(MatchError(engine.ErrUnavailable))
	g.Expect(err).To(MatchError(And(ContainSubstring("could not select device driver"), ContainSubstring("nvidia-container-toolkit"))))
	g.Expect(err).To(MatchError(And(ContainSubstring("runtime: "), ContainSubstring("cdi: "), ContainSubstring("devices: "))), "each way, and what it answered")
	g.Expect(*phases).To(BeEmpty())
	g.Expect(left(t, d)).To(Equal(0))
	err = container.New(config).Check(t.Context()) // the image is there now
	g.Expect(err).To(MatchError(engine.ErrUnavailable))
	g.Expect(err).To(MatchError(ContainSubstring("could not select device driver")))
	found, err := d.ContainerList(t.Context(), client.ContainerListOptions{All: true, Filters: client.Filters{}.Add("label", container.RunLabel+"=check")})
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(found.Items).To(BeEmpty(), "what tried it is gone")
}

func TestOneWayToAGPUIsTheOnlyOneTried(t *testing.T) {
	d := docker(t)
	for way, answer := range map[container.Access]string{
		container.Devices: "has no nvidia0", container.CDI: "cdi: ", container.Access("other"): "no way to give a container a GPU",
	} {
		t.Run(string(way), func(t *testing.T) {
			g := NewWithT(t)
			_, err := container.FindAccess(t.Context(), d, container.Config{Image: tiny, AllGPUs: true, GPUAccess: way})
			if err == nil {
				t.Skip("this machine's Docker can give one")
			}
			g.Expect(err).To(MatchError(ContainSubstring(answer)))
			g.Expect(err).NotTo(MatchError(ContainSubstring("runtime: ")))
		})
	}
}

func TestWhenAnImageIsPulledAndWhenBuilt(t *testing.T) {
	d := docker(t)
	const absent = "localhost:1/assay/test-tiny" // no registry listens there, and it has no tag
	remove := func() {
		_, _ = d.ImageRemove(context.Background(), absent, client.ImageRemoveOptions{Force: true, PruneChildren: true})
	}
	remove()
	t.Cleanup(remove)
	build := folder(t)
	for _, c := range []struct {
		name   string
		config container.Config
		want   string // of the error; empty: it starts
	}{
		{"absent, never pulled", container.Config{Image: absent, Pull: container.PullNever}, "never to pull"},
		{"absent, pulled", container.Config{Image: absent}, "can't be pulled"},
		{"absent, built", container.Config{Image: absent, Build: build}, ""},
		{"there, pulled if missing", container.Config{Image: absent}, ""},
		{"there, never pulled", container.Config{Image: absent, Pull: container.PullNever}, ""},
		{"there, always pulled", container.Config{Image: absent, Pull: container.PullAlways}, "can't be pulled"},
	} {
		t.Run(c.name, func(t *testing.T) {
			g := NewWithT(t)
			c.config.Port = 8000
			s, _, _, err := launch(t, c.config)
			if c.want != "" {
				g.Expect(err).To(MatchError(engine.ErrUnavailable))
				g.Expect(err).To(MatchError(ContainSubstring(c.want)))
				return
			}
			g.Expect(err).NotTo(HaveOccurred())
			id := s.Identity(t.Context())
			if c.config.Build != "" {
				g.Expect(id["image_build_ns"].Value).To(BeNumerically(">", 0))
			}
			g.Expect(s.Stop(t.Context())).To(Succeed())
		})
	}
}

// TestAPullThatBreaksIsSaid: Docker answers a pull with 200 at its beginning,
// and with what went wrong in the answer's body.
func TestAPullThatBreaksIsSaid(t *testing.T) {
	docker(t)
	digest := "sha256:" + strings.Repeat("0123456789abcdef", 4)
	manifest := fmt.Sprintf(`{"schemaVersion":2,"mediaType":"application/vnd.docker.distribution.manifest.v2+json",
		"config":{"mediaType":"application/vnd.docker.container.image.v1+json","size":7,"digest":%q},
		"layers":[{"mediaType":"application/vnd.docker.image.rootfs.diff.tar.gzip","size":7,"digest":%q}]}`, digest, digest)
	asked := make(chan struct{}, 100)
	registry := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch {
		case r.URL.Path == "/v2/":
		case strings.Contains(r.URL.Path, "/manifests/"):
			w.Header().Set("Content-Type", "application/vnd.docker.distribution.manifest.v2+json")
			fmt.Fprint(w, manifest)
			asked <- struct{}{}
		default:
			http.NotFound(w, r)
		}
	}))
	defer registry.Close()
	g := NewWithT(t)
	_, _, _, err := launch(t, container.Config{Image: strings.TrimPrefix(registry.URL, "http://") + "/broken:1", Port: 8000})
	if len(asked) == 0 {
		t.Skip("this Docker does not reach this process's loopback interface: ", err)
	}
	g.Expect(err).To(MatchError(engine.ErrUnavailable))
	g.Expect(err).To(MatchError(ContainSubstring("can't be pulled")))
}
