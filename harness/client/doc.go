// Package client makes one attempt at one request: a request written and a
// response read on a connection of its own, never through a Transport, which
// would send again and follow redirects. While the stream runs it copies bytes
// and notes times, the kernel's own where there are any; what the bytes mean is
// decoded after the end. Nothing that was seen is lost, least of all by a
// failure.
package client
