package e2b

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/paddock-sandbox/paddock"
	"github.com/paddock-sandbox/paddock/internal/dialect"
	"github.com/paddock-sandbox/paddock/internal/jsonbody"
	"github.com/paddock-sandbox/paddock/internal/wrap/lifetime"
)

// Bounds of builds.
const (
	maxBuilds     = 4    // in progress at once
	maxOwnBuilds  = 2    // of one tenant
	maxQueued     = 64   // builds that wait for others
	maxFirst      = 256  // builds that wait, if each above maxQueued is the only one of its tenant
	maxOwnQueued  = 16   // of one tenant
	maxTemplates  = 1000 // of one tenant, not counting snapshots
	maxTags       = 1000 // of one template, above which only a build or a snapshot adds one
	maxWaiting    = 16   // builds of a template that were not started; the oldest are removed
	maxSteps      = 200
	maxRequest    = 1 << 20 // bytes of a request's steps and commands, which are kept until the build ends
	argumentCost  = 64
	maxBuildLog   = 1 << 20 // bytes of the log's lines, with entryCost for each
	entryCost     = 160
	maxLine       = 8 << 10
	maxLogs       = 256 // ended builds whose logs are kept
	maxOwnLogs    = 16  // of one tenant
	buildTime     = 2 * time.Hour
	buildKept     = time.Hour // how long a build's log is kept
	forgetEvery   = 5 * time.Second
	buildPageSize = 100
)

// A build makes a template: it runs steps in a sandbox and takes a snapshot of it.
type build struct {
	id, template string
	caller       dialect.Caller
	begun        time.Time

	mu     sync.Mutex
	status string     // guarded by mu
	log    []logEntry // guarded by mu
	logged int        // guarded by mu; bytes of log
	left   int        // guarded by mu; lines that log has no room for
	reason string     // guarded by mu
	step   string     // guarded by mu
	ended  time.Time  // guarded by mu
	image  string     // guarded by mu; image of the root
	pulls  bool       // guarded by mu; the image is not known yet

	start func() // starts its work, once its turn has come; nil afterwards, because it holds the request
}

// The body of a request that starts a build.
type buildRequest struct {
	FromImage         string `json:"fromImage"`
	FromTemplate      string `json:"fromTemplate"`
	FromImageRegistry *login `json:"fromImageRegistry"`
	Steps             []step `json:"steps"`
	StartCmd          string `json:"startCmd"`
	ReadyCmd          string `json:"readyCmd"`
}

type step struct {
	Type      string   `json:"type"`
	Args      []string `json:"args"`
	FilesHash string   `json:"filesHash"`
}

// size returns the memory that the request takes while its build waits or runs, about.
func (q *buildRequest) size() int {
	n := len(q.FromImage) + len(q.FromTemplate) + len(q.StartCmd) + len(q.ReadyCmd)
	for _, s := range q.Steps {
		n += len(s.Type) + len(s.FilesHash) + 2*argumentCost
		for _, arg := range s.Args {
			n += len(arg) + argumentCost
		}
	}
	return n
}

// newTemplate handles POST /v3/templates. It creates a build.
func (c *call) newTemplate() error {
	var q struct {
		Name     string   `json:"name"`
		Alias    string   `json:"alias"`
		Tags     []string `json:"tags"`
		CPUs     *int     `json:"cpuCount"`
		MemoryMB *int64   `json:"memoryMB"`
		MinFree  *int64   `json:"minFreeDiskMb"`
	}
	if err := c.body(&q, false); err != nil {
		return err
	}
	if q.Name == "" {
		q.Name = q.Alias
	}
	n, ok := parseName(q.Name)
	if !ok || n.space != "" && n.space != c.caller.Tenant {
		return invalid("name: %q is not of the form name or name:tag, in lower case", dialect.Printable(q.Name))
	}
	if slices.Contains(base(), n.name) {
		return invalid("name: %q is a template of the server's", dialect.Printable(n.name))
	}
	tags := q.Tags
	if n.tag != "" {
		tags = append(slices.Clone(tags), n.tag)
	}
	if len(tags) == 0 {
		tags = []string{usualTag}
	}
	if err := goodTags(tags); err != nil {
		return err
	}
	free, err := disk("minFreeDiskMb", q.MinFree)
	if err != nil {
		return err
	}
	b := built{ID: uuid(), Status: waiting, Created: time.Now().UTC(), Limits: paddock.Limits{Disk: free}}
	if q.CPUs != nil {
		b.Limits.CPUs = float64(*q.CPUs)
	}
	if q.MemoryMB != nil {
		b.Limits.Memory = *q.MemoryMB << 20
	}
	if b.Limits.CPUs < 0 || b.Limits.Memory < 0 || b.Limits.CPUs > 1024 || b.Limits.Memory > 1<<44 {
		return invalid("cpuCount and memoryMB: positive numbers that a machine may have")
	}
	t := c.template(n.name, "")
	if t.Sandbox != "" {
		return refuse(409, paddock.Exists, "name: %q is a snapshot", dialect.Printable(n.name))
	}
	if n := len(c.listing()); len(t.Builds) == 0 && n >= maxTemplates {
		return refuse(429, paddock.Exhausted, "%d templates is the maximum; delete one", n)
	}
	b.Wanted = slices.Compact(slices.Sorted(slices.Values(tags)))
	t.Builds, t.Updated = append(started(t.Builds, maxWaiting-1), b), b.Created
	if err := c.prune(t, true); err != nil {
		return err
	}
	if err := c.h.save(c.ctx, t); err != nil {
		return err
	}
	return c.json(http.StatusAccepted, map[string]any{
		"templateID": t.ID, "buildID": b.ID, "public": false, "names": t.answer().Names, "tags": b.Wanted, "aliases": t.answer().Aliases,
	})
}

// disk converts a size in megabytes that a request asks for. Zero is the default.
func disk(field string, size *int64) (int64, error) {
	switch {
	case size == nil:
		return 0, nil
	case *size < 0 || *size > 1<<24:
		return 0, invalid("%s: a number of megabytes from 0 to %d", field, 1<<24)
	}
	return *size << 20, nil
}

// startBuild handles POST /v2/templates/{id}/builds/{build}. It runs the steps.
func (c *call) startBuild() error {
	var q buildRequest
	if err := c.body(&q, false); err != nil {
		return err
	}
	t, _, err := c.found()
	if err != nil {
		return err
	}
	b, ok := t.build(c.PathValue("build"))
	if !ok {
		return refuse(404, paddock.NotFound, "build '%s' not found", dialect.Printable(c.PathValue("build")))
	}
	if b.Status != waiting {
		return refuse(409, paddock.Conflict, "build '%s' was started already", b.ID)
	}
	from, err := c.from(q)
	if err != nil {
		return err
	}
	if n := q.size(); n > maxRequest {
		return refuse(413, paddock.Exhausted, "the steps and commands of a build have %d bytes, the maximum is %d", n, maxRequest)
	}
	if err := checkSteps(q.Steps); err != nil {
		return err
	}
	usual := from.limits.Disk
	if from.root.Kind != paddock.RootSnapshot {
		usual = c.h.o.Disk
	}
	if from.root.Kind != paddock.RootSnapshot || b.Limits != (paddock.Limits{}) {
		from.limits = b.Limits
	}
	if b.Limits.Disk > 0 && usual == 0 {
		info, err := c.caller.Driver.Info(c.ctx, from.tier)
		if err != nil {
			return err
		}
		usual = info.Defaults.Disk
	}
	from.limits.Disk = b.Limits.Disk + usual // what is to be free, beside what the steps write
	run := &build{id: b.ID, template: t.ID, caller: c.caller, begun: time.Now(), status: waiting, image: from.image}
	ctx := c.h.o.Mark(c.h.ctx, c.Request, c.caller.Tenant, c.caller.Who)
	run.start = func() { c.h.run(ctx, run, q, from) }
	if err := c.h.enqueue(run); err != nil {
		if errors.Is(err, paddock.Exhausted) {
			c.w.Header().Set("Retry-After", "5")
		}
		return err
	}
	c.w.WriteHeader(http.StatusAccepted)
	return nil
}

// enqueue starts a build, or lets it wait for the end of others.
func (h *Handler) enqueue(b *build) error {
	h.mu.Lock()
	defer h.mu.Unlock()
	own := 0
	for _, other := range h.queue {
		if other.caller.Tenant == b.caller.Tenant {
			own++
		}
	}
	switch {
	case h.closed:
		return refuse(503, paddock.Unavailable, "the server is stopping")
	case h.builds[b.id] != nil:
		return refuse(409, paddock.Conflict, "build '%s' was started already", b.id)
	case len(h.queue) >= maxFirst, len(h.queue) >= maxQueued && own > 0, own >= maxOwnQueued:
		return refuse(429, paddock.Exhausted, "%d builds wait, %d of them yours; the maximum is %d, and %d for a tenant", len(h.queue), own, maxQueued, maxOwnQueued)
	}
	h.dropLogs()
	h.builds[b.id] = b
	h.queue = append(h.queue, b)
	h.startQueued()
	if slices.Contains(h.queue, b) {
		b.say("info", "base", "waiting for other builds to end")
	}
	return nil
}

// startQueued starts the queued builds whose turn has come. The oldest is first, unless its
// tenant has as many as it may have. The last place is for a tenant that has none. The caller
// holds mu.
func (h *Handler) startQueued() {
	if h.closed {
		return
	}
	busy, own := 0, map[string]int{}
	for _, b := range h.builds {
		if b.in(building) {
			busy++
			own[b.caller.Tenant]++
		}
	}
	h.queue = slices.DeleteFunc(h.queue, func(b *build) bool {
		n := own[b.caller.Tenant]
		if busy >= maxBuilds || n >= maxOwnBuilds || n > 0 && busy == maxBuilds-1 {
			return false
		}
		busy++
		own[b.caller.Tenant]++
		b.mu.Lock()
		b.status = building
		b.mu.Unlock()
		h.wg.Go(func() {
			b.start()
			h.mu.Lock()
			defer h.mu.Unlock()
			b.start = nil
			h.dropLogs()
			h.startQueued()
		})
		return true
	})
}

// dropLogs drops the logs of ended builds of which there are too many: of each tenant, and of
// all. The newest stay. The caller holds mu.
func (h *Handler) dropLogs() {
	type ended struct {
		b  *build
		at time.Time
	}
	var list []ended
	for _, b := range h.builds {
		b.mu.Lock()
		if !b.ended.IsZero() {
			list = append(list, ended{b, b.ended})
		}
		b.mu.Unlock()
	}
	slices.SortFunc(list, func(a, b ended) int { return b.at.Compare(a.at) })
	all, own := 0, map[string]int{}
	for _, e := range list {
		if all == maxLogs || own[e.b.caller.Tenant] == maxOwnLogs {
			delete(h.builds, e.b.id)
			continue
		}
		all++
		own[e.b.caller.Tenant]++
	}
}

// from returns the root of a build. The default images of E2B's clients stand for this
// machine's system. Any other image is pulled when the build runs.
func (c *call) from(q buildRequest) (rooted, error) {
	switch image, _, _ := strings.Cut(q.FromImage, ":"); {
	case q.FromTemplate != "" && q.FromImage != "":
		return rooted{}, invalid("fromImage and fromTemplate exclude each other")
	case q.FromTemplate != "":
		return c.h.resolve(c.caller.Tenant, q.FromTemplate)
	case image == "", image == "e2bdev/base":
		return c.h.resolve(c.caller.Tenant, "base")
	case image == "e2bdev/code-interpreter":
		return c.h.resolve(c.caller.Tenant, interpreter)
	}
	return c.fromImage(q)
}

func checkSteps(steps []step) error {
	if len(steps) > maxSteps {
		return invalid("steps: %d steps, the maximum is %d", len(steps), maxSteps)
	}
	for i, s := range steps {
		n := len(s.Args)
		good := false
		switch s.Type {
		case "RUN":
			good = n == 1 || n == 2
		case "COPY":
			good = n >= 2 && n <= 4 && hashed(s.FilesHash)
		case "ENV":
			good = n >= 2 && n%2 == 0
		case "WORKDIR", "USER":
			good = n == 1
		default:
			return cannot("steps: step %d is %q, not RUN, COPY, ENV, WORKDIR or USER", i+1, dialect.Printable(s.Type))
		}
		if !good {
			return invalid("steps: step %d, %s, has the wrong arguments", i+1, s.Type)
		}
	}
	return nil
}

// in reports whether the build has one of some states.
func (b *build) in(states ...string) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	return slices.Contains(states, b.status)
}

// say adds a line to the log, unless it is full.
func (b *build) say(level, step, text string) {
	text = jsonbody.Cut(text, maxLine)
	b.mu.Lock()
	defer b.mu.Unlock()
	cost := len(text) + entryCost
	if b.left > 0 || b.logged+cost > maxBuildLog { // no later line appears without the ones before it
		b.left++
		return
	}
	b.logged += cost
	b.log = append(b.log, logEntry{Timestamp: time.Now().UTC(), Message: text, Level: level, Step: step})
}

// end sets the result of the build. The last line of its log says how many were left out.
// Clients ask for no line after they have read the result.
func (b *build) end(failure error, where string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.left > 0 {
		text := fmt.Sprintf("%d more lines were left out: the log of a build has at most %d bytes", b.left, maxBuildLog)
		b.log = append(b.log, logEntry{Timestamp: time.Now().UTC(), Message: text, Level: "warn", Step: where})
	}
	b.ended, b.status = time.Now(), ready
	if failure != nil {
		b.status, b.reason, b.step = failed, jsonbody.Cut(failure.Error(), maxLine), where
	}
}

// run makes the template and stores the result.
func (h *Handler) run(ctx context.Context, b *build, q buildRequest, from rooted) {
	ctx, cancel := context.WithTimeout(ctx, buildTime)
	defer cancel()
	made, where, err := h.produce(ctx, b, q, from)
	late := context.WithoutCancel(ctx)
	if saved := h.finish(late, b, made, err); saved != nil {
		err = errors.Join(err, saved)
		if made.Snapshot != "" {
			err = errors.Join(err, b.caller.Driver.RemoveSnapshot(late, made.Snapshot))
		}
	}
	b.end(err, where)
}

// produce does the work. After an error, where is the failed step.
func (h *Handler) produce(ctx context.Context, b *build, q buildRequest, from rooted) (made built, where string, err error) {
	where = "base"
	w := &work{b: b, h: h, env: from.env, user: from.user, dir: from.dir}
	if w.user == "" {
		w.user, w.dir = user, home
	}
	if from.pull != nil {
		img, err := h.pull(ctx, b, *from.pull)
		if err != nil {
			b.say("error", where, err.Error())
			return made, where, err
		}
		from.root, from.image, from.own = paddock.Root{Kind: paddock.RootDir, Path: img.Dir}, img.ID, true
		maps.Copy(w.env, img.environment())
		if err := fits(w.env); err != nil {
			b.say("error", where, err.Error())
			return made, where, err
		}
	} else {
		b.mu.Lock()
		b.image = from.image
		b.mu.Unlock()
	}
	spec := paddock.Spec{Tier: from.tier, Root: from.root, Limits: from.limits, Labels: map[string]string{"e2b.build": b.id}}
	if spec.Policy.Network, err = policy(nil, nil); err != nil {
		return made, where, err
	}
	if from.root.Kind != paddock.RootSnapshot {
		spec.User = user
	}
	if b.caller.Check != nil {
		if err := b.caller.Check(from.named(spec)); err != nil {
			return made, where, err
		}
	}
	b.say("info", where, "making a sandbox from "+from.template)
	sb, err := createWith(ctx, b.caller.Driver, &spec, from, lifetime.Terms{Lifetime: buildTime})
	if err != nil {
		return made, where, err
	}
	defer func() { err = errors.Join(err, sb.Remove(context.WithoutCancel(ctx))) }()
	st, err := sb.Status(ctx)
	if err != nil {
		return made, where, err
	}
	w.sb, w.own = sb, st.User
	closes, err := w.opens(ctx, "/", home)
	if err != nil {
		return made, where, err
	}
	for i, s := range q.Steps {
		where = strconv.Itoa(i + 1)
		if err := w.do(ctx, where, s); err != nil {
			b.say("error", where, err.Error())
			return made, where, err
		}
	}
	where = "finalize"
	if err := closes(ctx); err != nil {
		return made, where, err
	}
	if err := w.begin(ctx, q); err != nil {
		return made, where, err
	}
	b.say("info", where, "keeping it")
	made, err = w.keep(ctx, q.StartCmd != "")
	made.Image = from.image
	made.Sudo = spec.Sudo
	return made, where, err
}

// finish stores the result of a build.
func (h *Handler) finish(ctx context.Context, b *build, made built, failure error) error {
	h.mu.Lock()
	t := h.templates[b.template]
	h.mu.Unlock()
	if t == nil {
		return fmt.Errorf("the template was deleted: %w", paddock.NotFound)
	}
	t = t.clone()
	i := slices.IndexFunc(t.Builds, func(x built) bool { return x.ID == b.id })
	if i < 0 {
		return fmt.Errorf("the build was deleted: %w", paddock.NotFound)
	}
	was := t.Builds[i]
	made.ID, made.Created, made.Wanted, made.Finished, made.Status = was.ID, was.Created, was.Wanted, time.Now().UTC(), ready
	if failure != nil {
		made = was
		made.Status, made.Finished, made.Reason = failed, time.Now().UTC(), jsonbody.Cut(failure.Error(), maxLine)
	} else {
		for _, tag := range was.Wanted {
			t.Tags[tag] = was.ID
		}
	}
	t.Builds[i], t.Updated = made, made.Finished
	if err := h.prune(ctx, b.caller, t, true); err != nil {
		h.log.Warn("e2b: an unreferenced snapshot was not removed", "error", err)
	}
	return h.save(ctx, t)
}

// forgetBuilds drops the logs of builds that ended some time ago.
func (h *Handler) forgetBuilds(now time.Time) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for id, b := range h.builds {
		b.mu.Lock()
		if !b.ended.IsZero() && now.Sub(b.ended) > buildKept {
			delete(h.builds, id)
		}
		b.mu.Unlock()
	}
}

// A buildState is the present state of a build.
type buildState struct {
	status, reason, step string
	log                  []logEntry
}

// state returns a build of the caller's template that the path names.
func (c *call) state() (*template, buildState, error) {
	t, _, err := c.found()
	if err != nil {
		return nil, buildState{}, err
	}
	kept, ok := t.build(c.PathValue("build"))
	if !ok {
		return nil, buildState{}, refuse(404, paddock.NotFound, "build '%s' not found", dialect.Printable(c.PathValue("build")))
	}
	c.h.mu.Lock()
	b := c.h.builds[kept.ID]
	c.h.mu.Unlock()
	if b == nil {
		return t, buildState{status: kept.Status, reason: kept.Reason, step: kept.Step}, nil
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	return t, buildState{b.status, b.reason, b.step, slices.Clone(b.log)}, nil
}

// buildStatus answers with the state of a build and a page of its log.
func (c *call) buildStatus() error {
	t, s, err := c.state()
	if err != nil {
		return err
	}
	least, err := severity(c.URL.Query().Get("level"))
	if err != nil {
		return err
	}
	offset, limit := 0, buildPageSize
	for name, to := range map[string]*int{"logsOffset": &offset, "limit": &limit} {
		if text := c.URL.Query().Get(name); text != "" {
			if *to, err = strconv.Atoi(text); err != nil || *to < 0 {
				return invalid("%s: %q is not a number", name, dialect.Printable(text))
			}
		}
	}
	entries, lines := []logEntry{}, []string{}
	for _, e := range s.log[min(offset, len(s.log)):] {
		if have, _ := severity(e.Level); have >= least && len(entries) < min(limit, buildPageSize) {
			entries, lines = append(entries, e), append(lines, e.Message)
		}
	}
	answer := map[string]any{"templateID": t.ID, "buildID": c.PathValue("build"), "status": s.status, "logs": lines, "logEntries": entries}
	if s.status == failed {
		reason := map[string]any{"message": s.reason, "logEntries": []logEntry{}}
		if s.step != "" {
			reason["step"] = s.step
		}
		answer["reason"] = reason
	}
	return c.json(http.StatusOK, answer)
}

// buildLogs answers with the log of a build.
func (c *call) buildLogs() error {
	_, s, err := c.state()
	if err != nil {
		return err
	}
	list, err := chosen(c.Request, s.log)
	if err != nil {
		return err
	}
	return c.json(http.StatusOK, map[string]any{"logs": list})
}
