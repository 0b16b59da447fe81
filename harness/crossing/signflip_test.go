package crossing_test

import (
	"encoding/json"
	"math"
	"os"
	"testing"

	. "github.com/onsi/gomega"

	"assay/harness/crossing"
)

func TestSignFlipsAreSciPys(t *testing.T) {
	g := NewWithT(t)
	data, err := os.ReadFile("testdata/signflip.json")
	g.Expect(err).NotTo(HaveOccurred())
	var table struct {
		Cases []struct {
			Effects []float64
			Want    float64
		}
	}
	g.Expect(json.Unmarshal(data, &table)).To(Succeed())
	g.Expect(len(table.Cases)).To(BeNumerically(">=", 10))
	for _, c := range table.Cases {
		p, exact := crossing.SignFlip(c.Effects)
		g.Expect(p).To(BeNumerically("~", c.Want, 1e-12), "%v", c.Effects)
		g.Expect(exact).To(BeTrue())
	}
	p, _ := crossing.SignFlip(nil)
	g.Expect(math.IsNaN(p)).To(BeTrue())
	p, exact := crossing.SignFlip(make([]float64, 21))
	g.Expect(p).To(Equal(1.0), "nothing but zeros is as extreme as any flip of them")
	g.Expect(exact).To(BeFalse())
}
