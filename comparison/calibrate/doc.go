// Command calibrate simulates how often comparisons of runs find a slow-down,
// and one that is not there, and writes the table in docs/statistics.md.
package main
