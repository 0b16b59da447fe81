// Package matchers decides what the evidence supports: Gomega matchers over
// populations of attempts, and over whole runs. A matcher that is misused is
// an error; data that is missing fails; a failure shows the first divergence
// and the counts, not a dump.
package matchers
