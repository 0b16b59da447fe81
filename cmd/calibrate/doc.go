// Command calibrate simulates what inference from few replicates is worth, and
// writes the tables that docs/statistics.md shows: of the intervals and the test
// of package crossing with few pairs, whose table that package embeds too, and of
// how often comparisons of runs find a slow-down, and one that is not there.
package main
