//go:build linux

package container_test

import (
	"os"
	"path/filepath"
	"syscall"
	"testing"

	. "github.com/onsi/gomega"

	"assay/harness/engine/container"
)

// dev makes a folder of character devices that stands for /dev.
func dev(t *testing.T, names ...string) string {
	t.Helper()
	dir := t.TempDir()
	for _, name := range names {
		// The null device's numbers: what it does when opened is not looked at.
		if err := syscall.Mknod(filepath.Join(dir, name), syscall.S_IFCHR|0o600, 1<<8|3); err != nil {
			t.Skip("device files can't be made here: " + err.Error())
		}
	}
	return dir
}

func TestDeviceFilesOfTheGPUsThatAreNamed(t *testing.T) {
	g := NewWithT(t)
	dir := dev(t, "nvidia0", "nvidia1", "nvidiactl", "nvidia-uvm")
	g.Expect(os.WriteFile(filepath.Join(dir, "nvidia-notes"), nil, 0o600)).To(Succeed())
	at := func(names ...string) []string {
		var out []string
		for _, n := range names {
			out = append(out, filepath.Join(dir, n))
		}
		return out
	}
	all, err := container.DeviceFiles(dir, container.Config{AllGPUs: true})
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(all).To(ConsistOf(at("nvidia0", "nvidia1", "nvidiactl", "nvidia-uvm")))
	one, err := container.DeviceFiles(dir, container.Config{GPUs: []string{"1"}})
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(one).To(ConsistOf(at("nvidia1", "nvidiactl", "nvidia-uvm")))
	_, err = container.DeviceFiles(dir, container.Config{GPUs: []string{"2"}})
	g.Expect(err).To(MatchError(ContainSubstring("has no nvidia2")))
	_, err = container.DeviceFiles(t.TempDir(), container.Config{AllGPUs: true})
	g.Expect(err).To(MatchError(ContainSubstring("no driver has made its device files")))
}
