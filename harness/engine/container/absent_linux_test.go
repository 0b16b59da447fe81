package container_test

import (
	"os"
	"os/exec"
	"syscall"
	"testing"

	. "github.com/onsi/gomega"

	"assay/harness/engine"
	"assay/harness/engine/container"
)

// TestWithoutDockerItIsSaidHowToGetIt runs again in a process of its own that
// sees an empty folder where Docker's socket is: testcontainers looks there
// whatever DOCKER_HOST says.
func TestWithoutDockerItIsSaidHowToGetIt(t *testing.T) {
	g := NewWithT(t)
	if os.Getenv("ASSAY_TEST_NO_DOCKER") == "" {
		self := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^TestWithoutDockerItIsSaidHowToGetIt$")
		self.Env = append(os.Environ(), "ASSAY_TEST_NO_DOCKER=1", "DOCKER_HOST=unix:///no/such/socket", "XDG_RUNTIME_DIR=/no/such/folder", "HOME="+t.TempDir())
		self.SysProcAttr = &syscall.SysProcAttr{
			Cloneflags:  syscall.CLONE_NEWUSER | syscall.CLONE_NEWNS,
			UidMappings: []syscall.SysProcIDMap{{HostID: os.Getuid(), Size: 1}},
			GidMappings: []syscall.SysProcIDMap{{HostID: os.Getgid(), Size: 1}},
		}
		out, err := self.CombinedOutput()
		if self.Process == nil {
			t.Skip("this system allows no mounts of one's own: ", err)
		}
		g.Expect(err).NotTo(HaveOccurred(), string(out))
		return
	}
	g.Expect(syscall.Mount("none", "/run", "tmpfs", 0, "")).To(Succeed())
	e := container.New(container.Config{Image: tiny, Port: 8000, AllGPUs: true})
	_, err := e.Launch(t.Context(), engine.Launch{})
	for _, err := range []error{err, e.Check(t.Context())} {
		g.Expect(err).To(MatchError(engine.ErrUnavailable))
		g.Expect(err).To(MatchError(ContainSubstring("apt-get install docker.io")))
	}
}
