package container_test

import (
	"context"
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

// tiny is a server's image of a few megabytes: one static binary, built here.
const tiny = "assay/test-tiny:1"

const source = `package main

import (
	"fmt"
	"net/http"
	"os"
)

func main() {
	if len(os.Args) > 1 && os.Args[1] == "dies" {
		fmt.Println("no such model")
		os.Exit(3)
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

func launch(t *testing.T, c container.Config) (engine.Server, error, *log, *[]engine.Phase) {
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
	return s, err, &out, &phases
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
	s, err, out, phases := launch(t, container.Config{Image: tiny, Build: folder(t), Port: 8000})
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(engine.AwaitReady(t.Context(), s, engine.ReadyOptions{Poll: 5 * time.Millisecond})).To(Succeed())
	g.Expect(left(t, d)).To(Equal(1))
	id := s.Identity(t.Context())
	g.Expect(id["image_id"].Value).To(HavePrefix("sha256:"))
	g.Expect(id["model_digest"].Reason).NotTo(BeEmpty())
	g.Expect(s.Stop(t.Context())).To(Succeed())
	g.Expect(s.Exit().Asked).To(BeTrue())
	g.Expect(out.String()).To(ContainSubstring("listening\n"))
	g.Expect(*phases).To(Equal([]engine.Phase{engine.ImageReady, engine.Created, engine.Started, engine.EngineStarted, engine.Exited, engine.Removed}))
	g.Expect(left(t, d)).To(Equal(0))
}

func TestAContainerThatDiesSaysHow(t *testing.T) {
	d := docker(t)
	g := NewWithT(t)
	s, err, _, _ := launch(t, container.Config{Image: tiny, Build: folder(t), Port: 8000, Args: []string{"dies"}})
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
	s, err, _, _ := launch(t, container.Config{Image: tiny, Build: folder(t), Port: 8000})
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
	_, err, _, _ := launch(t, container.Config{Image: "localhost:1/none:1", Port: 8000})
	NewWithT(t).Expect(err).To(MatchError(ContainSubstring("can't be pulled")))
}

func TestWhatAKilledRunLeftIsRemovedAndALivingOneIsNot(t *testing.T) {
	d := docker(t)
	g := NewWithT(t)
	s, err, _, _ := launch(t, container.Config{Image: tiny, Build: folder(t), Port: 8000})
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
