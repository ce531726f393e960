package tracing

import (
	"context"
	"fmt"
	"net/http"
	"strconv"

	"go.opentelemetry.io/otel"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/exporters/otlp/otlptrace/otlptracehttp"
	"go.opentelemetry.io/otel/propagation"
	"go.opentelemetry.io/otel/sdk/resource"
	sdk "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/trace"

	"github.com/paddock-sandbox/paddock"
	"github.com/paddock-sandbox/paddock/internal/wrap/observe"
)

// A Tracer makes spans. A nil one makes none.
type Tracer struct {
	provider *sdk.TracerProvider
	tracer   trace.Tracer
}

// Wanted tells whether an environment asks for traces.
func Wanted(lookup func(string) (string, bool)) bool {
	value := func(name string) string { v, _ := lookup(name); return v }
	if value("OTEL_SDK_DISABLED") == "true" || value("OTEL_TRACES_EXPORTER") == "none" {
		return false
	}
	return value("OTEL_EXPORTER_OTLP_ENDPOINT") != "" || value("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT") != ""
}

// Open makes a tracer as the environment says, or none where it does not ask for
// one. Its queue and its exporter read the OTEL_ variables of this process. failed is
// told what cannot be sent, of every tracer of this process, and must not block.
func Open(ctx context.Context, lookup func(string) (string, bool), version string, failed func(error)) (*Tracer, error) {
	if !Wanted(lookup) {
		return nil, nil
	}
	sampler, err := samplerOf(lookup)
	if err != nil {
		return nil, err
	}
	for _, name := range []string{"OTEL_EXPORTER_OTLP_PROTOCOL", "OTEL_EXPORTER_OTLP_TRACES_PROTOCOL"} {
		if v, _ := lookup(name); v != "" && v != "http/protobuf" {
			return nil, fmt.Errorf("%s is %q, and spans are sent by http/protobuf alone: %w", name, v, paddock.Unsupported)
		}
	}
	otel.SetErrorHandler(otel.ErrorHandlerFunc(failed))
	out, err := otlptracehttp.New(ctx)
	if err != nil {
		return nil, fmt.Errorf("send traces: %w: %w", err, paddock.Invalid)
	}
	about, err := resource.New(ctx, resource.WithAttributes(attribute.String("service.name", "paddock"), attribute.String("service.version", version)), resource.WithFromEnv())
	if err != nil {
		return nil, fmt.Errorf("OTEL_RESOURCE_ATTRIBUTES: %w: %w", err, paddock.Invalid)
	}
	return with(sdk.WithBatcher(out), sdk.WithResource(about), sdk.WithSampler(sampler)), nil
}

// with makes a tracer of options.
func with(o ...sdk.TracerProviderOption) *Tracer {
	p := sdk.NewTracerProvider(append([]sdk.TracerProviderOption{sdk.WithRawSpanLimits(limits())}, o...)...)
	return &Tracer{provider: p, tracer: p.Tracer("github.com/paddock-sandbox/paddock")}
}

// limits bound a span, though none of ours comes near.
func limits() sdk.SpanLimits {
	return sdk.SpanLimits{
		AttributeValueLengthLimit: 256, AttributeCountLimit: 16, EventCountLimit: 1, LinkCountLimit: 1,
		AttributePerEventCountLimit: 4, AttributePerLinkCountLimit: 4,
	}
}

// samplerOf gives what OTEL_TRACES_SAMPLER names. The ones with a parent are those
// without, for a caller's wish: see the package comment.
func samplerOf(lookup func(string) (string, bool)) (sdk.Sampler, error) {
	name, _ := lookup("OTEL_TRACES_SAMPLER")
	switch name {
	case "", "always_on", "parentbased_always_on":
		return ours(sdk.AlwaysSample()), nil
	case "always_off", "parentbased_always_off":
		return ours(sdk.NeverSample()), nil
	case "traceidratio", "parentbased_traceidratio":
		text, _ := lookup("OTEL_TRACES_SAMPLER_ARG")
		ratio, err := strconv.ParseFloat(text, 64)
		if text == "" {
			ratio, err = 1, nil
		}
		if err != nil || !(ratio >= 0 && ratio <= 1) {
			return nil, fmt.Errorf("OTEL_TRACES_SAMPLER_ARG is %q, not a number from 0 to 1: %w", text, paddock.Invalid)
		}
		return ours(sdk.TraceIDRatioBased(ratio)), nil
	}
	return nil, fmt.Errorf("OTEL_TRACES_SAMPLER is %q, not one of always_on, always_off, traceidratio: %w", name, paddock.Invalid)
}

// ours asks a sampler where a trace enters, and follows what was said there for what
// is below it here.
func ours(root sdk.Sampler) sdk.Sampler {
	return sdk.ParentBased(root, sdk.WithRemoteParentSampled(root), sdk.WithRemoteParentNotSampled(root))
}

// Close sends what waits, as long as ctx lasts, and ends.
func (t *Tracer) Close(ctx context.Context) error {
	if t == nil {
		return nil
	}
	if err := t.provider.Shutdown(ctx); err != nil {
		return fmt.Errorf("send the last traces: %w: %w", err, paddock.Unavailable)
	}
	return nil
}

// Observe is a [observe.Observer].
func (t *Tracer) Observe(ctx context.Context, op observe.Op, tier paddock.Tier) (context.Context, func(error)) {
	if t == nil || !trace.SpanContextFromContext(ctx).IsValid() {
		return ctx, func(error) {} // what the server does by itself is no part of a trace
	}
	ctx, span := t.tracer.Start(ctx, string(op), trace.WithAttributes(attribute.String("paddock.tier", string(tier)))) //nolint:spancheck // whoever makes the call ends it, by what is given back
	return ctx, func(err error) {                                                                                      //nolint:spancheck // this is it
		if err != nil {
			kind := paddock.KindOf(err).Translate().Connect
			span.SetAttributes(attribute.String("error.type", kind))
			span.SetStatus(codes.Error, kind)
		}
		span.End()
	}
}

// Around makes a span of each request that h answers. route gives its pattern, from
// a list of the program's own, and number what the log calls it, from its answer. known
// tells whether who asks may name the trace: it is asked where a request names one, and
// nil is nobody.
func (t *Tracer) Around(route func(*http.Request) string, known func(*http.Request) bool, number string, h http.Handler) http.Handler {
	if t == nil {
		return h
	}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		pattern := route(r)
		if pattern == "" {
			pattern = "other"
		}
		ctx, span := t.tracer.Start(parent(r, known), pattern, trace.WithSpanKind(trace.SpanKindServer),
			trace.WithAttributes(attribute.String("http.route", pattern), attribute.String("http.request.method", method(r.Method))))
		c := &coded{ResponseWriter: w}
		defer func() { // also where the handler gives the connection up
			span.SetAttributes(attribute.Int("http.response.status_code", c.code), attribute.String("paddock.request", w.Header().Get(number)))
			if c.code >= 500 || c.code == 0 {
				span.SetStatus(codes.Error, "")
			}
			span.End()
		}()
		h.ServeHTTP(c, r.WithContext(ctx))
	})
}

// parent gives a request's context with the trace that it names, where it is of
// somebody who is known, and nothing else of what it says.
func parent(r *http.Request, known func(*http.Request) bool) context.Context {
	if r.Header.Get("Traceparent") == "" || known == nil || !known(r) {
		return r.Context()
	}
	only := propagation.MapCarrier{"traceparent": r.Header.Get("Traceparent")}
	return propagation.TraceContext{}.Extract(r.Context(), only)
}

// method keeps what a caller may choose to a list.
func method(m string) string {
	switch m {
	case http.MethodGet, http.MethodHead, http.MethodPost, http.MethodPut, http.MethodPatch, http.MethodDelete, http.MethodOptions, http.MethodConnect, http.MethodTrace:
		return m
	}
	return "_OTHER"
}

// A coded writer remembers the code of the answer.
type coded struct {
	http.ResponseWriter
	code int
}

func (c *coded) WriteHeader(code int) {
	if c.code < 200 {
		c.code = code
	}
	c.ResponseWriter.WriteHeader(code)
}

func (c *coded) Write(p []byte) (int, error) {
	if c.code == 0 {
		c.code = http.StatusOK
	}
	return c.ResponseWriter.Write(p)
}

// Unwrap is for http.ResponseController.
func (c *coded) Unwrap() http.ResponseWriter { return c.ResponseWriter }
