//go:build !unix

package load

// cpuTime can't be read here; a wave's cpu_ns is then 0.
func cpuTime() int64 { return 0 }
