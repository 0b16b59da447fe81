package owner_test

import (
	"os"
	"os/exec"
	"testing"

	. "github.com/onsi/gomega"

	"assay/harness/engine/owner"
)

func TestThisProcessLives(t *testing.T) {
	g := NewWithT(t)
	self := owner.Self()
	g.Expect(self.PID).To(Equal(os.Getpid()))
	g.Expect(self.Gone()).To(BeFalse())
	again, err := owner.Parse(self.String())
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(again).To(Equal(self))
}

func TestWhoIsGone(t *testing.T) {
	self := owner.Self()
	if self.Boot == "" {
		t.Skip("this system says neither its boot nor when a process began")
	}
	ended := exec.Command("sleep", "100")
	NewWithT(t).Expect(ended.Start()).To(Succeed())
	child := owner.Of(ended.Process.Pid)
	NewWithT(t).Expect(child.Gone()).To(BeFalse())
	NewWithT(t).Expect(ended.Process.Kill()).To(Succeed())
	// Before it is waited for it still has an entry, as a zombie.
	NewWithT(t).Eventually(child.Gone).Should(BeTrue())
	_ = ended.Wait()

	with := func(change func(*owner.Owner)) owner.Owner { o := self; change(&o); return o }
	for name, c := range map[string]struct {
		owner owner.Owner
		gone  bool
	}{
		"a process that was waited for":  {child, true},
		"this id, given away again":      {with(func(o *owner.Owner) { o.Began = "1" }), true},
		"an earlier boot":                {with(func(o *owner.Owner) { o.Boot = "0123456789abcdef" }), true},
		"a boot that nobody wrote down":  {with(func(o *owner.Owner) { o.Boot = "" }), false},
		"another machine's dead process": {with(func(o *owner.Owner) { o.Machine, o.Began = "0123456789abcdef", "1" }), false},
		"another machine's earlier boot": {with(func(o *owner.Owner) { o.Machine, o.Boot = "0123456789abcdef", "x" }), false},
	} {
		t.Run(name, func(t *testing.T) { NewWithT(t).Expect(c.owner.Gone()).To(Equal(c.gone)) })
	}
}

func FuzzParse(f *testing.F) {
	for _, text := range []string{"a/b/1@2", "a//1@", "/b/1@2", "a/b/x@2", "a/b/-1@2", "", "a/b/1", "a/b@c/1@2@3"} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		o, err := owner.Parse(text)
		if err != nil {
			return
		}
		again, err := owner.Parse(o.String())
		NewWithT(t).Expect(err).NotTo(HaveOccurred())
		NewWithT(t).Expect(again).To(Equal(o))
	})
}
