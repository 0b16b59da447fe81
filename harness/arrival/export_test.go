package arrival

// What only tests see: the functions that have to be the same everywhere.
var (
	NaturalLog  = naturalLog
	Exponential = exponential
)
