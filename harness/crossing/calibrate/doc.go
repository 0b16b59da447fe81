// Command calibrate simulates what the intervals and the test of package
// crossing are worth with few pairs, and writes the table that the package
// embeds and docs/statistics.md shows.
package main
