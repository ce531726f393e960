package agentprofile

import (
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/paddock-sandbox/paddock/internal/agentlogin"
	"github.com/paddock-sandbox/paddock/internal/egress/gatewayclient"
)

// logins are, for each profile with a login, requests of a turn and others that must not get its token: they make or
// change what outlives the sandbox.
func logins() map[string]struct{ given, kept []string } {
	return map[string]struct{ given, kept []string }{
		"claude": {
			[]string{
				"POST api.anthropic.com/v1/messages", "POST api.anthropic.com/v1/messages/count_tokens", "GET api.anthropic.com/v1/models",
				"GET api.anthropic.com/v1/models/m", "GET api.anthropic.com/api/oauth/profile",
			},
			[]string{
				"POST api.anthropic.com/v1/code/sessions/X/bridge", "POST api.anthropic.com/v1/environments/bridge", "POST api.anthropic.com/v1/code/triggers",
				"POST api.anthropic.com/v1/code/github/import-token", "POST api.anthropic.com/v1/oauth/token", "POST api.anthropic.com/v1/messages/batches",
				"POST api.anthropic.com/v1/files", "POST api.anthropic.com/v1/agents", "POST api.anthropic.com/v1/sessions", "POST api.anthropic.com/v1/skills",
				"POST api.anthropic.com/v1/environments", "POST api.anthropic.com/v1/memory_stores", "GET api.anthropic.com/v1/files",
				"POST api.anthropic.com/api/oauth/claude_cli/create_api_key", "POST api.anthropic.com/api/oauth/account/settings",
				"POST api.anthropic.com/api/oauth/organizations/o/sync/github/auth", "PUT api.anthropic.com/api/claude_code/settings",
				"POST api.anthropic.com/v1/messages/../code/triggers", "POST api.anthropic.com/v1/models/..%2fcode/triggers", "POST api.anthropic.com/",
			},
		},
		"codex": {
			[]string{
				"POST chatgpt.com/backend-api/codex/responses", "GET chatgpt.com/backend-api/codex/responses", "POST chatgpt.com/backend-api/codex/responses/compact",
				"GET chatgpt.com/backend-api/codex/models",
			},
			[]string{
				"POST chatgpt.com/backend-api/codex/tasks", "POST chatgpt.com/backend-api/wham/tasks", "GET chatgpt.com/backend-api/wham/environments",
				"POST chatgpt.com/backend-api/codex/settings/user", "POST chatgpt.com/backend-api/codex/rate-limit-reset-credits/consume",
				"GET chatgpt.com/backend-api/me", "GET chatgpt.com/api/auth/session", "POST chatgpt.com/backend-api/codex/agent-identities",
			},
		},
		"opencode": {
			[]string{"POST chatgpt.com/backend-api/codex/responses"},
			[]string{"POST chatgpt.com/backend-api/codex/tasks", "POST chatgpt.com/backend-api/codex/rate-limit-reset-credits/consume", "GET chatgpt.com/api/auth/session"},
		},
		"gemini": {
			[]string{"POST cloudcode-pa.googleapis.com/v1internal:streamGenerateContent", "POST cloudcode-pa.googleapis.com/v1internal:loadCodeAssist"},
			[]string{
				"POST cloudcode-pa.googleapis.com/v1internal:onboardUser", "POST cloudcode-pa.googleapis.com/v1internal:setCodeAssistGlobalUserSetting",
				"POST cloudcode-pa.googleapis.com/v1internal/operations/x", "POST cloudcode-pa.googleapis.com/v1internal:other", "POST www.googleapis.com/drive/v3/files",
				"POST oauth2.googleapis.com/revoke",
			},
		},
	}
}

func TestALoginIsForTheRequestsOfATurn(t *testing.T) {
	rows := logins()
	for _, name := range Names() {
		p, err := Builtin(name)
		if err != nil {
			t.Fatal(err)
		}
		if len(p.Login) == 0 {
			continue
		}
		row, ok := rows[name]
		if !ok {
			t.Errorf("%s has a login, and no row here", name)
			continue
		}
		l := loggedIn(t, p)
		for _, r := range slices.Concat(row.given, row.kept) {
			method, at, _ := strings.Cut(r, " ")
			host, path, _ := strings.Cut(at, "/")
			a := l.Login(t.Context(), gatewayclient.LoginRequest{Host: host, Port: 443, Method: method, Path: "/" + path})
			if given := len(a.Tokens) > 0; given != slices.Contains(row.given, r) {
				t.Errorf("%s: %s gets a token: %v", name, r, given)
			}
		}
	}
}

// loggedIn makes the files of a profile's logins on a host.
func loggedIn(t *testing.T, p *Profile) *agentlogin.Login {
	t.Helper()
	home := t.TempDir()
	for _, s := range p.Login {
		top := map[string]any{}
		for _, at := range []string{s.Access, s.Refresh, s.ID} {
			if at == "" {
				continue
			}
			m, keys := top, strings.Split(at, ".")
			for _, k := range keys[:len(keys)-1] {
				if m[k] == nil {
					m[k] = map[string]any{}
				}
				m = m[k].(map[string]any)
			}
			m[keys[len(keys)-1]] = "a-real-token-of-" + at
		}
		data, err := json.Marshal(top)
		if err != nil {
			t.Fatal(err)
		}
		file := filepath.Join(home, s.File[2:])
		if err := os.MkdirAll(filepath.Dir(file), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(file, data, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	l, err := agentlogin.Prepare(agentlogin.Options{Sections: p.Login, Home: home, Lock: filepath.Join(home, "locks")})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	if _, err := l.Files(); err != nil {
		t.Fatal(err)
	}
	return l
}

// A token of GitHub that is not meant for Copilot alone makes keys of the account. Secrets know no paths.
func TestATokenOfTheWholeAccountIsNotGivenUnasked(t *testing.T) {
	for _, name := range Names() {
		p, err := Builtin(name)
		if err != nil {
			t.Fatal(err)
		}
		for _, k := range p.Keys {
			if k.Variable == "GH_TOKEN" || k.Variable == "GITHUB_TOKEN" {
				t.Errorf("%s gives %s to %q", name, k.Variable, k.Hosts)
			}
		}
	}
}
