// Package tracing sends spans to an OpenTelemetry collector: one for each request, and
// below it one for each call of a driver. It is off unless OTEL_EXPORTER_OTLP_ENDPOINT or
// OTEL_EXPORTER_OTLP_TRACES_ENDPOINT names a collector.
//
// # Contents of a span
//
// A span has the route, method, status code, operation, tier and kind of error, each from
// a list in this program, and the request number that is also in the log. It has no ID,
// path, argument, header or error text, because many people read a collector.
//
// # Trust
//
// A request with a valid key may name its trace in traceparent, so that callers find their
// own calls. The traceparent of any other request is ignored: the trace number would decide
// what a sampler keeps, and could put a stranger's spans among another caller's. The
// sampled flag of a caller is ignored where the environment samples a part, because one
// tenant could then make the server write without end. The sampler decides by the trace
// number alone. tracestate and baggage are ignored, because they are free text of callers.
//
// A slow collector costs spans, never requests: spans wait in a bounded queue, and the
// rest is dropped.
package tracing
