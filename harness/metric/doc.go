// Package metric is the metric contract, version 3: the one place where records
// become numbers. Everything in it is a pure function of a plan and of
// records, so that anyone can compute a run's numbers again from its bundle.
package metric
