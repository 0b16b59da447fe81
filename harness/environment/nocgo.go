//go:build !cgo

package environment

// cgoEnabled says whether this build can call NVML.
const cgoEnabled = false
