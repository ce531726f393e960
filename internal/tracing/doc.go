// Package tracing tells a collector of OpenTelemetry what a server does: a span for
// each request, and below it one for each call of a driver. It is off unless the
// environment names a collector by OTEL_EXPORTER_OTLP_ENDPOINT or
// OTEL_EXPORTER_OTLP_TRACES_ENDPOINT.
//
// # What a span says
//
// Its route, method, status code, operation, tier and kind of error: words from this
// program's own lists, and the request's number, which the log has too. No ID, path,
// argument, header or error text is sent: collectors are read by many, and kept by
// others.
//
// # Whom it believes
//
// The traceparent of a request with a good key names the trace that its span joins, so that a
// caller finds its own calls; it decides nothing else. Anybody else's is passed over, and gets a
// trace of its own: the number alone would choose what a sampler keeps, and put a stranger's
// spans among those of others. That a caller asks for a trace to be kept is
// not believed where the environment samples a part, since one tenant could then have
// the server write without end: the sampler decides by the trace's number alone.
// tracestate and baggage are free text of callers, and are not taken.
//
// A collector that is slow or gone costs spans, never requests: they wait in a queue
// with a bound, and what does not fit is dropped.
package tracing
