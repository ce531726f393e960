package serve

import (
	"bytes"
	"errors"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"go.yaml.in/yaml/v3"

	"github.com/paddock-sandbox/paddock"
)

func deployed(t *testing.T, name string) string {
	t.Helper()
	data, err := os.ReadFile("../../../deploy/" + name)
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}

func TestTheConfigurationsThatAreShippedAreTaken(t *testing.T) {
	manifest := objects(t)["ConfigMap"]
	for name, body := range map[string]string{
		"paddock.yaml": deployed(t, "paddock.yaml"), "kubernetes.yaml": textAt(t, manifest, "data", "paddock.yaml"),
	} {
		fs := serveSettings(t)
		settings, err := parseConfig(name, []byte(body), fs)
		if err != nil {
			t.Errorf("%v", err)
			continue
		}
		f := &serveFlags{
			listen: settings["listen"].text, cert: settings["tls-cert"].text, certKey: settings["tls-key"].text, keyFile: settings["key-file"].text,
			operate: operateFlags{metrics: settings["metrics"].text, metricsOpen: settings["metrics-open"].text == "true"},
		}
		if err := f.check(); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// objects are those of the manifest, by kind. Each line of it is known to the types of
// Kubernetes as far as this test says which; nothing here asks a cluster.
func objects(t *testing.T) map[string]any {
	t.Helper()
	all := map[string]any{}
	for dec := yaml.NewDecoder(bytes.NewReader([]byte(deployed(t, "kubernetes.yaml")))); ; {
		var o map[string]any
		err := dec.Decode(&o)
		if errors.Is(err, io.EOF) {
			return all
		}
		if err != nil {
			t.Fatal(err)
		}
		all[textAt(t, o, "kind")] = o
	}
}

// at follows keys and indices into a document.
func partAt(t *testing.T, v any, path ...any) any {
	t.Helper()
	for _, step := range path {
		switch step := step.(type) {
		case string:
			m, ok := v.(map[string]any)
			if !ok || m[step] == nil {
				t.Fatalf("%v: there is no %s", path, step)
			}
			v = m[step]
		case int:
			list, ok := v.([]any)
			if !ok || len(list) <= step {
				t.Fatalf("%v: there is no item %d", path, step)
			}
			v = list[step]
		}
	}
	return v
}

func textAt(t *testing.T, v any, path ...any) string {
	t.Helper()
	s, ok := partAt(t, v, path...).(string)
	if !ok {
		t.Fatalf("%v is no text", path)
	}
	return s
}

func TestTheManifestGivesThePodNoMoreThanItNeeds(t *testing.T) {
	all := objects(t)
	kinds := []string{"ConfigMap", "Namespace", "NetworkPolicy", "Service", "ServiceAccount", "StatefulSet"}
	for _, kind := range kinds {
		want := map[string]string{"StatefulSet": "apps/v1", "NetworkPolicy": "networking.k8s.io/v1"}[kind]
		if want == "" {
			want = "v1"
		}
		if got := textAt(t, all[kind], "apiVersion"); got != want || textAt(t, all[kind], "metadata", "name") != "paddock" {
			t.Errorf("%s: %s", kind, got)
		}
	}
	if len(all) != len(kinds) {
		t.Errorf("%d kinds", len(all))
	}
	pod := partAt(t, all["StatefulSet"], "spec", "template", "spec")
	box := partAt(t, pod, "containers", 0)
	for _, row := range []struct {
		from any
		path []any
		want any
	}{
		{all["ServiceAccount"], []any{"automountServiceAccountToken"}, false},
		{pod, []any{"automountServiceAccountToken"}, false},
		{pod, []any{"hostUsers"}, false},
		{pod, []any{"securityContext", "runAsNonRoot"}, true},
		{pod, []any{"securityContext", "runAsUser"}, 64100},
		{box, []any{"securityContext", "allowPrivilegeEscalation"}, false},
		{box, []any{"securityContext", "privileged"}, false},
		{box, []any{"securityContext", "readOnlyRootFilesystem"}, true},
		{box, []any{"securityContext", "capabilities", "drop", 0}, "ALL"},
		{box, []any{"securityContext", "procMount"}, "Unmasked"},
		{box, []any{"livenessProbe", "httpGet", "path"}, "/healthz"},
		{box, []any{"readinessProbe", "httpGet", "path"}, "/readyz"},
		{all["StatefulSet"], []any{"spec", "replicas"}, 1},
	} {
		if got := partAt(t, row.from, row.path...); got != row.want {
			t.Errorf("%v is %v, want %v", row.path, got, row.want)
		}
	}
	partAt(t, box, "resources", "limits", "memory")
	for _, name := range []string{"hostNetwork", "hostPID", "hostIPC"} {
		if m, ok := pod.(map[string]any); !ok || m[name] != nil {
			t.Errorf("%s is there", name)
		}
	}
}

func TestTheManifestHangsTogether(t *testing.T) {
	all := objects(t)
	pod := partAt(t, all["StatefulSet"], "spec", "template", "spec")
	box := partAt(t, pod, "containers", 0)
	var volumes, ports []string
	names := func(v any) (list []string) {
		items, ok := v.([]any)
		if !ok {
			t.Fatalf("%v is no list", v)
		}
		for i := range items {
			list = append(list, textAt(t, items, i, "name"))
		}
		return list
	}
	volumes = append(names(partAt(t, pod, "volumes")), textAt(t, all["StatefulSet"], "spec", "volumeClaimTemplates", 0, "metadata", "name"))
	ports = names(partAt(t, box, "ports"))
	for _, name := range names(partAt(t, box, "volumeMounts")) {
		if !slices.Contains(volumes, name) {
			t.Errorf("the volume %s is mounted, and is not there", name)
		}
	}
	for _, name := range []string{
		textAt(t, all["Service"], "spec", "ports", 0, "targetPort"), textAt(t, box, "readinessProbe", "httpGet", "port"),
		textAt(t, all["NetworkPolicy"], "spec", "ingress", 0, "ports", 0, "port"),
	} {
		if !slices.Contains(ports, name) {
			t.Errorf("there is no port %s", name)
		}
	}
	const label = "app.kubernetes.io/name"
	for _, got := range []string{
		textAt(t, all["StatefulSet"], "spec", "selector", "matchLabels", label), textAt(t, all["StatefulSet"], "spec", "template", "metadata", "labels", label),
		textAt(t, all["Service"], "spec", "selector", label), textAt(t, all["NetworkPolicy"], "spec", "podSelector", "matchLabels", label),
		textAt(t, pod, "serviceAccountName"), textAt(t, all["StatefulSet"], "spec", "serviceName"),
	} {
		if got != "paddock" {
			t.Errorf("%q is not paddock", got)
		}
	}
}

// A volume belongs to root, and with fsGroup its group may write to it: a server refuses
// that for its state.
func TestTheManifestsStateIsADirectoryOfTheServersOwn(t *testing.T) {
	all := objects(t)
	box := partAt(t, all["StatefulSet"], "spec", "template", "spec", "containers", 0)
	var config struct{ State string }
	if err := yaml.Unmarshal([]byte(textAt(t, all["ConfigMap"], "data", "paddock.yaml")), &config); err != nil {
		t.Fatal(err)
	}
	volume := textAt(t, box, "volumeMounts", 0, "mountPath")
	if filepath.Dir(config.State) != volume || textAt(t, box, "env", 0, "name") != "PADDOCK_STATE" || textAt(t, box, "env", 0, "value") != config.State {
		t.Errorf("the state is %s, and the volume %s", config.State, volume)
	}
	dir := t.TempDir()
	if err := os.Chmod(dir, 0o775|os.ModeSetgid); err != nil {
		t.Fatal(err)
	}
	a := invoke(t.TempDir(), nil, nil).App
	if _, err := stateDir(a, dir); !errors.Is(err, paddock.Denied) {
		t.Errorf("the volume itself: %v", err)
	}
	if _, err := stateDir(a, filepath.Join(dir, filepath.Base(config.State))); err != nil {
		t.Error(err)
	}
}

// instruction is one of a Containerfile; lines that go on are joined before.
var instruction = regexp.MustCompile(`^(ARG|CMD|COPY|ENTRYPOINT|ENV|EXPOSE|FROM|HEALTHCHECK|LABEL|RUN|STOPSIGNAL|USER|VOLUME|WORKDIR) \S`)

func TestTheContainerfileEndsWithAnOrdinaryUserAndAsksTheServerItself(t *testing.T) {
	joined := strings.ReplaceAll(deployed(t, "Containerfile"), "\\\n", "")
	last := map[string]string{}
	for line := range strings.SplitSeq(joined, "\n") {
		if line == "" || strings.HasPrefix(line, "#") {
			continue
		}
		if !instruction.MatchString(line) {
			t.Errorf("no instruction: %s", line)
			continue
		}
		name, rest, _ := strings.Cut(line, " ")
		last[name] = rest
	}
	if last["USER"] != "64100:64100" {
		t.Errorf("the user is %q", last["USER"])
	}
	for name, want := range map[string][]string{"HEALTHCHECK": {"serve", "ready", "http://127.0.0.1:9464"}, "CMD": {"serve", "--config", "/etc/paddock/paddock.yaml"}} {
		_, list, ok := strings.Cut(last[name], "[")
		var args []string
		if err := yaml.Unmarshal([]byte("["+list), &args); err != nil || !ok {
			t.Fatalf("%s: %v", name, err)
		}
		args = args[len(args)-len(want):]
		if !slices.Equal(args, want) {
			t.Errorf("%s is %q", name, args)
		}
		root := invoke(t.TempDir(), nil, nil).App.Root()
		if c, left, err := root.Find(args); err != nil || c.Name() != map[string]string{"HEALTHCHECK": "ready", "CMD": "serve"}[name] || len(left) == 0 {
			t.Errorf("%s: %v, %v", name, left, err)
		}
	}
}
