// Package scheduler is a model of how a server turns requests into tokens over
// time: one at a time, or in continuous batches with a KV budget and a waiting
// queue. It is driven step by step and holds no clock: the emulated server
// drives it in real time, tests and fits in none.
package scheduler
