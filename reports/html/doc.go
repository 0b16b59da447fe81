// Package html makes report.html of a run: one file that needs no network and
// opens from disk, with the verdict, the tables, the figures, and under them the
// records that they stand on. What it draws it takes from the summary and the
// records; it computes no result.
package html
