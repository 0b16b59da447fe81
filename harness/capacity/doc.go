// Package capacity searches for the highest arrival rate at which objectives
// hold, and says whether a server keeps up with a rate at all. It runs nothing
// itself: it says which probe is next, judges each by exact bounds of the share
// of its attempts that were within each limit, and answers with a bracket and
// all that led to it. What it says follows from the probes alone, so that it
// can be gone through again from their records.
//
// # How far a verdict can be trusted
//
// Attempts that stand in one queue one after the other are late together, and
// six hundred of them can be worth sixty. The bounds are therefore taken at an
// effective number of attempts, from how their order hangs together. What that
// mends is simulated in the package's tests: Poisson arrivals at one server
// with exponential service, 600 attempts a probe, at the rate where exactly
// 95 % are within the limit, so that a verdict either way is wrong, and each
// should come in 5 % of the probes at most.
//
//   - At 70 % of what the server can serve: as if attempts were independent,
//     47 % are found to hold and 27 % to fail. By which were within the limit,
//     25 % and 2 %. By their values too, 8 % and 2 %.
//   - At 85 %: 66 % and 24 %; 56 % and 4 %; 1 % and 3 %.
//   - At 85 % with constant service and 1200 attempts: 56 % and 29 %; 28 % and
//     3 %; 9 % and 2 %.
//   - Where attempts are independent in truth: 3 % and 3 %; 3 % and 2 %; 3 % and
//     2 %.
//
// What remains wrong: a probe whose attempts were all within, or nearly all,
// shows no late ones from which it could be seen how they come together. Without
// their values they are taken for independent, and a lucky probe holds. With
// them those that were latest, though not too late, stand in for them, which is
// a rule of thumb: up to twice the wrong verdicts that were asked for are seen
// above. Of a median there are none to stand in, and a probe of 600 attempts at
// 93 % of what the server can serve is wrongly found to hold in 17 % and to fail
// in 10 %. Nothing in a probe shows changes that are slower than it is long.
//
// The price is power: where the capacity is 70 % of what the server can serve, a
// probe of 600 attempts at nine tenths of it is found to hold one time in four,
// and one at seven tenths three times in four.
//
// # Growth
//
// Simulated likewise, over 500 mean service times in ten parts, at a confidence
// of 95 %: a server at 50 or 80 % of what it can serve was never called
// unstable in 400 runs, one at 95 % in 1.5 % of them with exponential service
// and 0.5 % with constant. One that is offered 1.1 times what it can serve was
// in 41 and 65 %, and 1.3 times in 98 % or more. Without a warm-up the queue of
// one at 99 % is still filling, and was called unstable in 9 %.
package capacity
