// Package scheduler is a model of how a server turns requests into tokens over
// time: one at a time, or in continuous batches with a KV budget and a waiting
// queue. The model itself is stepped and holds no clock. Simulate drives it on
// a virtual one, event by event, and a Runner on the process's own, scaled;
// both give the same tokens at the same emulated times.
package scheduler
