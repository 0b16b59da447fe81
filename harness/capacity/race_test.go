//go:build race

package capacity_test

func init() { raced = true }
