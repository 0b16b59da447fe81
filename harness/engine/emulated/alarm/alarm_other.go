//go:build !linux

package alarm

func precise() Alarm { return nil }
