package arrival

import "math"

// The functions below give the same bits on every machine, which those of
// package math don't: some are assembly on some machines, and elsewhere the
// compiler may fuse a product into a sum. Here each product is rounded before
// it is added, and each operation is one that IEEE 754 rounds correctly.

// log2 in two parts: the first has zeros enough at its end that its product
// with any exponent is exact.
const (
	log2High = 0x1.62e42fee00000p-01
	log2Low  = 0x1.a39ef35793c76p-33
)

// naturalLog is the natural logarithm of a positive, normal x: of its fraction
// f by 2·artanh((f−1)/(f+1)), whose series has shrunk below the last bit after
// twelve terms where f is within √½ to √2.
func naturalLog(x float64) float64 {
	f, exponent := math.Frexp(x)
	if f < math.Sqrt2/2 {
		f, exponent = f*2, exponent-1
	}
	s := (f - 1) / (f + 1)
	square := float64(s * s)
	sum := 0.0
	for k := 23; k >= 3; k -= 2 {
		sum = float64((sum + 1/float64(k)) * square)
	}
	k := float64(exponent)
	return float64(k*log2High) + (float64(2*s) + (float64(float64(2*s)*sum) + float64(k*log2Low)))
}

// exponential is e to the power x, for x of 0 or less; 0 below −700.
func exponential(x float64) float64 {
	if x < -700 {
		return 0
	}
	k := math.Round(x / math.Ln2)
	r := (x - float64(k*log2High)) - float64(k*log2Low)
	sum := 1.0
	for n := 16; n >= 1; n-- {
		sum = 1 + float64(float64(r/float64(n))*sum)
	}
	return math.Ldexp(sum, int(k))
}
