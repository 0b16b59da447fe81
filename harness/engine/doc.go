// Package engine is what a server is: a container, a process, an endpoint that
// somebody else runs, or an emulated server in this process. One small
// interface stands for all four, so that an experiment does not know which it
// has; each engine lives in a package of its own below this one.
package engine
